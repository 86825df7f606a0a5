// Swizzles and packed fields by bits: shared memory of 32 rows of 64, read back in the order in which it was written.
func.func @swizzle(%a: memref<2048xf32>, %b: memref<2048xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c6 = arith.constant 6 : index
  %c7 = arith.constant 7 : index
  %c8 = arith.constant 8 : index
  %c56 = arith.constant 56 : index
  %c64 = arith.constant 64 : index
  %c2048 = arith.constant 2048 : index
  scf.for %i = %c0 to %c2048 step %c1 {
    %row = arith.divui %i, %c64 : index
    %column = arith.remui %i, %c64 : index
    %phase = arith.remui %row, %c8 : index
    %shifted = arith.muli %phase, %c8 : index
    %swizzled = arith.xori %column, %shifted : index
    %back = arith.xori %swizzled, %shifted : index
    %start = arith.shli %row, %c6 : index
    %from = arith.ori %start, %back : index
    %x = memref.load %a[%from] : memref<2048xf32>
    %high = arith.shrui %i, %c3 : index
    %wide = arith.shli %high, %c3 : index
    %low = arith.andi %i, %c7 : index
    %to = arith.xori %wide, %low : index
    memref.store %x, %b[%to] : memref<2048xf32>
    %at = arith.ori %start, %swizzled : index
    memref.store %x, %a[%at] : memref<2048xf32>
  }
  return
}
// Of values of either sign.
func.func @signs(%a: memref<4096xi64>, %n: i32) {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %c6 = arith.constant 6 : i64
  %c100 = arith.constant 100 : i64
  %all = arith.constant -1 : i64
  %low = arith.constant -100 : i64
  scf.for %i = %low to %c100 step %c1 : i64 {
    %wide = arith.extsi %n : i32 to i64
    %0 = arith.xori %i, %wide : i64
    %1 = arith.xori %0, %wide : i64
    %2 = arith.xori %wide, %all : i64
    %3 = arith.ori %2, %wide : i64
    %4 = arith.andi %1, %c6 : i64
    %5 = arith.addi %4, %3 : i64
    %at = arith.index_cast %1 : i64 to index
    %x = memref.load %a[%at] : memref<4096xi64>
    %to = arith.index_cast %5 : i64 to index
    memref.store %x, %a[%to] : memref<4096xi64>
  }
  return
}
