#split = affine_map<(d0) -> (d0 floordiv 64)>
#rest = affine_map<(d0) -> (d0 mod 64)>
#join = affine_map<(d0, d1) -> (d0 * 64 + d1)>
module {
  func.func @collapse(%a: memref<64x32xf32>, %b: memref<2048xf32>) {
    affine.for %i = 0 to 32 {
      affine.for %j = 0 to 64 {
        %flat = affine.apply #join(%i, %j)
        %row = affine.apply #split(%flat)
        %column = affine.apply #rest(%flat)
        %again = affine.apply #join(%row, %column)
        %x = affine.load %a[%column, %row] : memref<64x32xf32>
        affine.store %x, %b[%again] : memref<2048xf32>
      }
    }
    return
  }
}
