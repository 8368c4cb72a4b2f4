pragma circom 2.1.0;

include "bits.circom";

// a * b, whose sum has at most four bits.
template Product() {
    signal input a;
    signal input b;
    signal output product;
    component bits = Bits(4);
    bits.in <== a + b;
    product <== a * b + bits.out[0];
}

component main { public [a] } = Product();
