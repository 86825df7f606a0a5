func.func @parallel(%a: memref<16x32xf32>, %n: index) {
  affine.parallel (%i, %j) = (0, 0) to (16, 32) {
    %x = affine.load %a[(%i * 32 + %j) floordiv 32, (%i * 32 + %j) mod 32] : memref<16x32xf32>
    affine.store %x, %a[%i, (%j + symbol(%n) * 0) mod 32] : memref<16x32xf32>
  }
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c16 = arith.constant 16 : index
  scf.parallel (%i, %j) = (%c0, %c0) to (%c16, %c4) step (%c1, %c1) {
    %0 = arith.muli %i, %c4 : index
    %1 = arith.addi %0, %j : index
    %2 = arith.divui %1, %c4 : index
    %3 = arith.remui %1, %c4 : index
    %x = memref.load %a[%2, %3] : memref<16x32xf32>
    memref.store %x, %a[%2, %j] : memref<16x32xf32>
    scf.reduce
  }
  return
}
