// Tiles of 32 over 200 by 96: only the first extent is cut.
#size = affine_map<(d0) -> (32, -d0 + 96)>
#cut = affine_map<(d0) -> (-d0 + 200, 32)>
func.func @tiles(%a: memref<200x96xf32>, %out: memref<8xindex>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %c96 = arith.constant 96 : index
  %c200 = arith.constant 200 : index
  scf.for %i = %c0 to %c200 step %c32 {
    scf.for %j = %c0 to %c96 step %c32 {
      %rows = affine.min #cut(%i)
      %columns = affine.min #size(%j)
      memref.store %rows, %out[%c0] : memref<8xindex>
      memref.store %columns, %out[%c1] : memref<8xindex>
      scf.for %ii = %c0 to %rows step %c1 {
        scf.for %jj = %c0 to %columns step %c1 {
          %0 = arith.addi %i, %ii : index
          %1 = arith.addi %j, %jj : index
          %2 = arith.divsi %1, %c32 : index
          %3 = arith.minsi %0, %c200 : index
          memref.store %2, %out[%3] : memref<8xindex>
        }
      }
    }
  }
  return
}
