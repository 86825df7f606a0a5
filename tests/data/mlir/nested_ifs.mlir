// What the branches know of %i: below 24, then at least 16.
func.func @nested(%a: memref<64xi32>, %b: memref<64xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %c24 = arith.constant 24 : index
  %c64 = arith.constant 64 : index
  scf.for %i = %c0 to %c64 step %c1 {
    %low = arith.cmpi slt, %i, %c24 : index
    %high = arith.cmpi sge, %i, %c16 : index
    scf.if %low {
      scf.if %high {
        %0 = arith.divsi %i, %c8 : index
        %1 = arith.remsi %i, %c8 : index
        %2 = arith.muli %0, %c16 : index
        %3 = arith.addi %1, %2 : index
        %x = memref.load %a[%3] : memref<64xi32>
        memref.store %x, %b[%1] : memref<64xi32>
      } else {
        %0 = arith.remsi %i, %c16 : index
        %x = memref.load %a[%0] : memref<64xi32>
        memref.store %x, %b[%i] : memref<64xi32>
      }
    } else {
      %0 = arith.divsi %i, %c24 : index
      %1 = arith.minsi %0, %c1 : index
      %x = memref.load %a[%1] : memref<64xi32>
      memref.store %x, %b[%0] : memref<64xi32>
    }
  }
  return
}
