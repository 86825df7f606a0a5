// Quotients of an outer loop meet their remainders in an inner one.
func.func @outer(%a: memref<8192xf32>, %b: memref<8192xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  scf.for %i = %c0 to %c64 step %c1 {
    %q = arith.divsi %i, %c16 : index
    %r = arith.remsi %i, %c16 : index
    %base = arith.muli %q, %c16 : index
    scf.for %k = %c0 to %c16 step %c1 {
      %0 = arith.addi %base, %r : index
      %1 = arith.muli %0, %c16 : index
      %2 = arith.addi %1, %k : index
      %x = memref.load %a[%2] : memref<8192xf32>
      %3 = arith.divsi %2, %c16 : index
      memref.store %x, %b[%3] : memref<8192xf32>
    }
  }
  scf.for %k = %c0 to %c16 step %c1 {
    %q = arith.divsi %k, %c16 : index
    %x = memref.load %a[%q] : memref<8192xf32>
    memref.store %x, %b[%k] : memref<8192xf32>
  }
  return
}
