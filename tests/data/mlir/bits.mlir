// Shifts and masks as divisions, on values of either sign.
func.func @bits(%a: memref<4096xi64>, %n: i32) {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %c3 = arith.constant 3 : i64
  %c7 = arith.constant 7 : i64
  %c100 = arith.constant 100 : i64
  %low = arith.constant -100 : i64
  scf.for %i = %low to %c100 step %c1 : i64 {
    %0 = arith.shrsi %i, %c3 : i64
    %1 = arith.shli %0, %c3 : i64
    %2 = arith.andi %i, %c7 : i64
    %3 = arith.addi %1, %2 : i64
    %wide = arith.extsi %n : i32 to i64
    %4 = arith.shli %wide, %c3 : i64
    %5 = arith.addi %4, %2 : i64
    %6 = arith.shrsi %5, %c3 : i64
    %at = arith.index_cast %3 : i64 to index
    %x = memref.load %a[%at] : memref<4096xi64>
    %to = arith.index_cast %6 : i64 to index
    memref.store %x, %a[%to] : memref<4096xi64>
  }
  return
}
