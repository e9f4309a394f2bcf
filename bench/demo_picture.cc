#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include <echopipe/bench/demo_picture.h>

// Nothing but + - * / and sqrt on floats, which are the same on every machine as long as no two of
// them are fused (-ffp-contract=off).

namespace echopipe {
namespace {

using Color = std::array<float, 3>;  // red, green, blue in [0, 255]

constexpr Color kWhite{255, 255, 255};
constexpr Color kBlack{0, 0, 0};

Color Mix(const Color& a, const Color& b, float share_of_b) {
  Color mixed{};
  for (size_t c = 0; c < 3; ++c) mixed[c] = a[c] + (b[c] - a[c]) * share_of_b;
  return mixed;
}

float Fraction(float value) { return value - std::floor(value); }

// A pure colour; hues 0, 1/3 and 2/3 are red, green and blue.
Color FromHue(float hue) {
  Color color{};
  for (size_t c = 0; c < 3; ++c) {
    const float distance = std::abs(Fraction(hue - static_cast<float>(c) / 3 + 0.5F) - 0.5F);
    color[c] = 255 * std::clamp(2 - 6 * distance, 0.0F, 1.0F);
  }
  return color;
}

struct Palette {
  Color top, bottom, shapes;
};

// Hues a golden section apart stay distinct however many classes there are.
Palette PaletteOf(int label) {
  const float hue = Fraction(static_cast<float>(label) * 0.618034F);
  return {.top = Mix(FromHue(hue), kWhite, 0.45F),
          .bottom = Mix(FromHue(hue + 0.08F), kBlack, 0.55F),
          .shapes = Mix(FromHue(hue + 0.45F), kWhite, 0.2F)};
}

float Between(float low, float high, RandomStream& random) {
  return low + (high - low) * static_cast<float>(random.Next() >> 8) * 0x1p-24F;
}

// A unit vector of a random direction in the right half plane.
std::array<float, 2> Direction(RandomStream& random) {
  const float t = Between(-1, 1, random);
  return {(1 - t * t) / (1 + t * t), 2 * t / (1 + t * t)};
}

// How far (u, v) is from the middle of a shape; 1 on its border.
float ShapeDistance(int kind, float u, float v) {
  switch (kind) {
    case 0:  // ellipse
      return std::sqrt(u * u + v * v);
    case 1:  // rectangle
      return std::max(std::abs(u), std::abs(v));
    case 2:  // diamond
      return std::abs(u) + std::abs(v);
    default:  // ring
      return std::abs(std::sqrt(u * u + v * v) - 0.7F) / 0.3F;
  }
}

class Canvas {
 public:
  Canvas(int width, int height)
      : width_(width),
        height_(height),
        pixels_(static_cast<size_t>(width) * static_cast<size_t>(height)),
        light_(pixels_.size()) {}

  void FillGradient(const Color& top, const Color& bottom) {
    for (int y = 0; y < height_; ++y) {
      const float depth = static_cast<float>(y) / static_cast<float>(height_);
      std::fill_n(pixels_.begin() + static_cast<ptrdiff_t>(Offset(0, y)), width_,
                  Mix(top, bottom, depth));
    }
  }

  void DrawShape(int kind, const Color& color, RandomStream& random) {
    const float size = static_cast<float>(std::min(width_, height_));
    const float middle_x = Between(0.1F, 0.9F, random) * static_cast<float>(width_);
    const float middle_y = Between(0.1F, 0.9F, random) * static_cast<float>(height_);
    const float half_width = Between(0.1F, 0.3F, random) * size;
    const float half_height = half_width * Between(0.6F, 1, random);
    const float edge = half_height / Between(1, 5, random);  // pixels from 0 to 1 at the border
    const auto [cos, sin] = Direction(random);

    const float reach = half_width * 1.5F;
    const int first_y = std::max(0, static_cast<int>(middle_y - reach));
    const int last_y = std::min(height_ - 1, static_cast<int>(middle_y + reach));
    const int first_x = std::max(0, static_cast<int>(middle_x - reach));
    const int last_x = std::min(width_ - 1, static_cast<int>(middle_x + reach));
    for (int y = first_y; y <= last_y; ++y) {
      for (int x = first_x; x <= last_x; ++x) {
        const float dx = static_cast<float>(x) - middle_x;
        const float dy = static_cast<float>(y) - middle_y;
        const float u = (dx * cos + dy * sin) / half_width;
        const float v = (dy * cos - dx * sin) / half_height;
        const float cover = std::clamp((1 - ShapeDistance(kind, u, v)) * edge, 0.0F, 1.0F);
        // Lit from above.
        const Color shaded = Mix(color, kBlack, std::clamp(0.25F + dy / (2 * size), 0.0F, 0.8F));
        Color& pixel = pixels_[Offset(x, y)];
        pixel = Mix(pixel, shaded, cover);
      }
    }
  }

  void AddStripes(const std::array<float, 2>& direction, float period, float strength) {
    for (int y = 0; y < height_; ++y) {
      for (int x = 0; x < width_; ++x) {
        const float along =
            static_cast<float>(x) * direction[0] + static_cast<float>(y) * direction[1];
        light_[Offset(x, y)] += strength * (std::abs(Fraction(along / period) - 0.5F) * 4 - 1);
      }
    }
  }

  // Value noise: random brightness on a grid of `cell` pixels, smooth in between.
  void AddNoise(int cell, float strength, RandomStream& random) {
    const int columns = width_ / cell + 2;
    const int rows = height_ / cell + 2;
    std::vector<float> grid(static_cast<size_t>(columns) * static_cast<size_t>(rows));
    for (float& value : grid) value = Between(-strength, strength, random);
    std::vector<float> weights(static_cast<size_t>(cell));
    for (int i = 0; i < cell; ++i) {
      const float t = static_cast<float>(i) / static_cast<float>(cell);
      weights[static_cast<size_t>(i)] = t * t * (3 - 2 * t);
    }
    std::vector<float> line(static_cast<size_t>(columns));
    for (int y = 0; y < height_; ++y) {
      const float* above = grid.data() + static_cast<ptrdiff_t>(y / cell) * columns;
      const float weight = weights[static_cast<size_t>(y % cell)];
      for (int i = 0; i < columns; ++i) {
        line[static_cast<size_t>(i)] = above[i] + (above[i + columns] - above[i]) * weight;
      }
      AddNoiseLine(line, weights, &light_[Offset(0, y)]);
    }
  }

  std::vector<uint8_t> Finish() const {
    std::vector<uint8_t> bytes(pixels_.size() * 3);
    for (size_t i = 0; i < pixels_.size(); ++i) {
      for (size_t c = 0; c < 3; ++c) {
        const float value = std::clamp(pixels_[i][c] + light_[i] + 0.5F, 0.0F, 255.0F);
        bytes[3 * i + c] = static_cast<uint8_t>(value);
      }
    }
    return bytes;
  }

 private:
  size_t Offset(int x, int y) const {
    return static_cast<size_t>(y) * static_cast<size_t>(width_) + static_cast<size_t>(x);
  }

  void AddNoiseLine(const std::vector<float>& line, const std::vector<float>& weights,
                    float* out) const {
    const int cell = static_cast<int>(weights.size());
    for (int x = 0; x < width_; x += cell) {
      const float left = line[static_cast<size_t>(x / cell)];
      const float right = line[static_cast<size_t>(x / cell) + 1];
      const int end = std::min(cell, width_ - x);
      for (int i = 0; i < end; ++i) {
        out[x + i] += left + (right - left) * weights[static_cast<size_t>(i)];
      }
    }
  }

  int width_;
  int height_;
  std::vector<Color> pixels_;
  std::vector<float> light_;  // added to every channel
};

}  // namespace

std::vector<uint8_t> DrawDemoPicture(const DemoPictureOptions& options, RandomStream random) {
  constexpr std::array<std::array<float, 2>, 5> kStripes{
      {{1, 0}, {0.8F, 0.6F}, {0.6F, -0.8F}, {0, 1}, {0.28F, 0.96F}}};
  const auto label = static_cast<size_t>(options.label);
  const Palette palette = PaletteOf(options.label);

  Canvas canvas(options.width, options.height);
  canvas.FillGradient(Mix(palette.top, kBlack, Between(0, 0.4F, random)),
                      Mix(palette.bottom, kWhite, Between(0, 0.4F, random)));
  for (uint32_t shapes = 3 + random.Below(5); shapes > 0; --shapes) {
    const Color color = Mix(palette.shapes, palette.bottom, Between(0, 0.5F, random));
    canvas.DrawShape(options.label % 4, color, random);
  }
  canvas.AddStripes(kStripes[label % kStripes.size()], Between(14, 28, random),
                    Between(2, 10, random));
  // Like a photo's, the spectrum falls with frequency; `detail` lifts its upper end.
  const float detail = Between(0, 1, random);
  for (const int cell : {128, 64, 32, 16}) canvas.AddNoise(cell, 20, random);
  for (const int cell : {8, 4}) canvas.AddNoise(cell, 8 + 18 * detail, random);
  canvas.AddNoise(2, 13 + 27 * detail, random);
  canvas.AddNoise(1, 8 + 15 * detail, random);
  return canvas.Finish();
}

}  // namespace echopipe
