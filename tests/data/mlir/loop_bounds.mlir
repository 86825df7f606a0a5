// Bounds of loops that divide, or compare with what cannot be the extreme.
#rows = affine_map<(d0) -> ((d0 * 8) floordiv 8, 0)>
#end = affine_map<(d0)[s0] -> (d0 + 16, 64, s0)>
func.func @bounds(%a: memref<64xf32>, %x: f32, %n: index) {
  affine.for %i = 0 to 16 {
    affine.for %j = max #rows(%i) to min #end(%i)[%n] {
      affine.store %x, %a[%j] : memref<64xf32>
    }
    affine.for %j = affine_map<(d0) -> (d0 mod 16)>(%i) to affine_map<(d0) -> ((d0 * 4 + 3) floordiv 4 + 1)>(%i) step 2 {
      affine.store %x, %a[%j] : memref<64xf32>
    }
    %k = affine.apply affine_map<(d0) -> (d0 * 4)>(%i)
    affine.for %j = 0 to affine_map<(d0) -> (d0 floordiv 4 + 3)>(%k) {
      affine.store %x, %a[%j] : memref<64xf32>
    }
    %r = affine.for %j = 0 to min affine_map<(d0) -> (32 - d0, 32)>(%i) iter_args(%s = %x) -> (f32) {
      affine.store %s, %a[%j] : memref<64xf32>
      affine.yield %s : f32
    }
  }
  return
}
