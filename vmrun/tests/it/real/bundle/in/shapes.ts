export type Shape = { kind: 'circle', radius: number } | { kind: 'box', width: number, height: number };
export function area(shape: Shape): number {
  switch (shape.kind) {
    case 'circle': return Math.PI * shape.radius ** 2;
    case 'box': return shape.width * shape.height;
  }
}
