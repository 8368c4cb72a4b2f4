// Two adders that compute the same, and whether they differ.
module adder(input a, input b, input c, output sum, output carry, output differ);
    wire half = a ^ b;
    assign sum = half ^ c;
    assign carry = (a & b) | (half & c);
    wire other_sum = (a & b & c) | ((a | b | c) & ~((a & b) | (b & c) | (a & c)));
    wire other_carry = (a & b) | (b & c) | (a & c);
    assign differ = (sum ^ other_sum) | (carry ^ other_carry);
endmodule
