// Truncating and flooring division below zero; %n may be anything.
func.func @negative(%a: memref<4096xindex>, %n: index) {
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %c20 = arith.constant 20 : index
  %m20 = arith.constant -20 : index
  scf.for %i = %m20 to %c20 step %c1 {
    %0 = arith.divsi %i, %c5 : index
    %1 = arith.remsi %i, %c5 : index
    %2 = arith.muli %0, %c5 : index
    %3 = arith.addi %2, %1 : index
    %4 = arith.floordivsi %i, %c5 : index
    %5 = arith.muli %4, %c5 : index
    %6 = arith.subi %i, %5 : index
    memref.store %3, %a[%0] : memref<4096xindex>
    memref.store %4, %a[%6] : memref<4096xindex>
    %7 = arith.muli %n, %c5 : index
    %8 = arith.divsi %7, %c5 : index
    %9 = arith.divsi %n, %c5 : index
    %10 = arith.muli %9, %c5 : index
    %11 = arith.remsi %n, %c5 : index
    %12 = arith.addi %10, %11 : index
    memref.store %8, %a[%12] : memref<4096xindex>
  }
  return
}
