// A size that is known at run time: the loop says that %i is below it.
#row = affine_map<(d0)[s0] -> (d0 floordiv 8 + (d0 mod 8) floordiv 8 + s0 - s0)>
func.func @symbols(%a: memref<?xf32>, %size: i32) {
  %c100 = arith.constant 100 : i32
  %c1 = arith.constant 1 : i32
  %0 = arith.maxsi %size, %c1 : i32
  %1 = arith.minsi %0, %c100 : i32
  %n = arith.index_cast %1 : i32 to index
  affine.for %i = 0 to %n {
    %row = affine.apply #row(%i)[%n]
    %2 = arith.remui %i, %n : index
    %3 = arith.divui %i, %n : index
    %4 = arith.addi %2, %3 : index
    %x = memref.load %a[%4] : memref<?xf32>
    affine.store %x, %a[%row] : memref<?xf32>
  }
  return
}
