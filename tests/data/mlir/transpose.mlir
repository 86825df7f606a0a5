// A transposition by way of the flat index, in i32.
func.func @transpose(%a: memref<1024xf32>, %b: memref<1024xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %m = arith.constant 32 : i32
  scf.for %i = %c0 to %c32 step %c1 {
    scf.for %j = %c0 to %c32 step %c1 {
      %i32 = arith.index_cast %i : index to i32
      %j32 = arith.index_cast %j : index to i32
      %0 = arith.muli %i32, %m : i32
      %flat = arith.addi %0, %j32 : i32
      %row = arith.divsi %flat, %m : i32
      %column = arith.remsi %flat, %m : i32
      %1 = arith.muli %column, %m : i32
      %2 = arith.addi %1, %row : i32
      %from = arith.index_cast %flat : i32 to index
      %to = arith.index_cast %2 : i32 to index
      %x = memref.load %a[%from] : memref<1024xf32>
      memref.store %x, %b[%to] : memref<1024xf32>
    }
  }
  return
}
