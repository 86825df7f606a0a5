#count = affine_map<(d0) -> (d0 ceildiv 4)>
func.func @tiles(%a: memref<64xindex>) {
  affine.for %i = 0 to 64 {
    %n = affine.apply #count(%i)
    %m = affine.apply affine_map<(d0) -> ((d0 * 4) ceildiv 4 + (d0 + 64) ceildiv 128)>(%i)
    affine.store %n, %a[%i] : memref<64xindex>
    affine.store %m, %a[(%i * 8 + 7) floordiv 8] : memref<64xindex>
    %c4 = arith.constant 4 : index
    %k = arith.muli %i, %c4 : index
    %up = arith.ceildivsi %k, %c4 : index
    %up2 = arith.ceildivui %i, %c4 : index
    memref.store %up2, %a[%up] : memref<64xindex>
  }
  return
}
