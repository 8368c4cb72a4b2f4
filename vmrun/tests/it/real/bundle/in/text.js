exports.upper = (text) => text.toUpperCase();
exports.unused = () => `${1 + 2} never called`;
