(set-logic QF_ABV)
; sum and carry, bit by bit, are addition: there is no counterexample
(declare-const x (_ BitVec 16))
(declare-const y (_ BitVec 16))
(declare-const m (Array (_ BitVec 4) (_ BitVec 16)))
(declare-const i (_ BitVec 4))
(declare-const j (_ BitVec 4))
(assert (or
  (not (= (bvadd (bvxor x y) (bvshl (bvand x y) (_ bv1 16))) (bvadd x y)))
  (and (not (= i j)) (not (= (select (store (store m i x) j y) i) x)))))
(check-sat)
(exit)
