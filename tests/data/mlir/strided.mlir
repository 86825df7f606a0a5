// Steps of 8: what is below them is zero.
func.func @strided(%a: memref<4096xf32>) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c4 = arith.constant 4 : index
  %c2 = arith.constant 2 : index
  %c256 = arith.constant 256 : index
  scf.for %i = %c0 to %c256 step %c8 {
    affine.for %j = 0 to 16 step 4 {
      %0 = arith.remsi %i, %c4 : index
      %1 = arith.divsi %i, %c2 : index
      %2 = arith.remsi %1, %c4 : index
      %3 = arith.divsi %j, %c4 : index
      %4 = arith.muli %3, %c4 : index
      %5 = arith.addi %0, %2 : index
      %6 = arith.addi %5, %4 : index
      %7 = arith.addi %6, %i : index
      %x = memref.load %a[%7] : memref<4096xf32>
      memref.store %x, %a[%4] : memref<4096xf32>
    }
  }
  return
}
