pragma circom 2.1.0;

// The bits of a number, lowest first.
template Bits(n) {
    signal input in;
    signal output out[n];
    var sum = 0;
    for (var i = 0; i < n; i++) {
        out[i] <-- (in >> i) & 1;
        out[i] * (out[i] - 1) === 0;
        sum += out[i] * (1 << i);
    }
    sum === in;
}
