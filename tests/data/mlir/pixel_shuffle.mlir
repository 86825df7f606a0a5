// Channels become pixels: 4x4 blocks of 9x9.
func.func @pixel_shuffle(%a: memref<16x9x9xf32>, %b: memref<1296xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c9 = arith.constant 9 : index
  %c36 = arith.constant 36 : index
  scf.for %y = %c0 to %c36 step %c1 {
    scf.for %x = %c0 to %c36 step %c1 {
      %0 = arith.muli %y, %c36 : index
      %flat = arith.addi %0, %x : index
      %row = arith.divui %flat, %c36 : index
      %column = arith.remui %flat, %c36 : index
      %dy = arith.remui %row, %c4 : index
      %dx = arith.remui %column, %c4 : index
      %1 = arith.muli %dy, %c4 : index
      %channel = arith.addi %1, %dx : index
      %sy = arith.divui %row, %c4 : index
      %sx = arith.divui %column, %c4 : index
      %v = memref.load %a[%channel, %sy, %sx] : memref<16x9x9xf32>
      memref.store %v, %b[%flat] : memref<1296xf32>
    }
  }
  return
}
