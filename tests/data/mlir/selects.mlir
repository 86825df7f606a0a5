// Remainders by comparison and selection, and a reduction carried by the loop.
func.func @selects(%a: memref<128xf32>, %flag: i1) -> index {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %c63 = arith.constant 63 : index
  %c64 = arith.constant 64 : index
  %total = scf.for %i = %c0 to %c64 step %c1 iter_args(%sum = %c0) -> (index) {
    %wrap = arith.cmpi sge, %i, %c32 : index
    %less = arith.subi %i, %c32 : index
    %0 = arith.select %wrap, %less, %i : index
    %1 = arith.remui %i, %c32 : index
    %2 = arith.subi %0, %1 : index
    %3 = arith.maxsi %i, %c0 : index
    %4 = arith.minsi %3, %c63 : index
    %5 = arith.select %flag, %4, %i : index
    %x = memref.load %a[%5] : memref<128xf32>
    memref.store %x, %a[%2] : memref<128xf32>
    %next = arith.addi %sum, %4 : index
    scf.yield %next : index
  }
  return %total : index
}
