// A flat index, split into tiles of 8 by 16 and joined again.
func.func @tiled_copy(%a: memref<2048xf32>, %b: memref<2048xf32>) {
  affine.for %i = 0 to 2048 {
    %c16 = arith.constant 16 : index
    %c128 = arith.constant 128 : index
    %tile = arith.divsi %i, %c128 : index
    %in_tile = arith.remsi %i, %c128 : index
    %row = arith.divsi %in_tile, %c16 : index
    %column = arith.remsi %in_tile, %c16 : index
    %0 = arith.muli %tile, %c128 : index
    %1 = arith.muli %row, %c16 : index
    %2 = arith.addi %0, %1 : index
    %3 = arith.addi %2, %column : index
    %x = memref.load %a[%3] : memref<2048xf32>
    memref.store %x, %b[%3] : memref<2048xf32>
  }
  return
}
