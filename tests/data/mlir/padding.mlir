#inside = affine_set<(d0) : (d0 - 1 >= 0, 32 - d0 >= 0)>
func.func @pad(%a: memref<32xf32>, %b: memref<34xf32>, %zero: f32) {
  affine.for %i = 0 to 34 {
    affine.if #inside(%i) {
      %x = affine.load %a[(%i + 31) mod 32] : memref<32xf32>
      affine.store %x, %b[%i + (%i - 1) floordiv 32] : memref<34xf32>
    } else {
      affine.store %zero, %b[%i] : memref<34xf32>
    }
  }
  return
}
