import { missing } from './nowhere.js';
export const list = [1, 2;
