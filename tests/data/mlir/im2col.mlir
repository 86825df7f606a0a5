// The patches of a 3 by 3 window over 16 by 16 by 8, each as a row.
func.func @im2col(%image: memref<18x18x8xf32>, %out: memref<256x72xf32>) {
  affine.for %p = 0 to 256 {
    affine.for %k = 0 to 72 {
      %x = affine.load %image[%p floordiv 16 + (%k floordiv 8) floordiv 3, %p mod 16 + (%k floordiv 8) mod 3, (%k + %p * 72) mod 8] : memref<18x18x8xf32>
      affine.store %x, %out[(%k + %p * 72) floordiv 72, (%k + %p * 72) mod 72] : memref<256x72xf32>
    }
  }
  return
}
