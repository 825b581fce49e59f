"""Student's t and the functions that moderated variances need, with the standard library alone.

Without numpy or scipy, the supervisor stays small and starts at once. Pure.
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

_NORMAL = NormalDist()


def student_t_tail(t: float, df: float) -> float:
    """Probability that Student's t with `df` degrees of freedom exceeds `t` ≥ 0 (Abramowitz & Stegun 26.7.1)."""
    square = t * t
    x = df / (df + square)
    return 0.5 * _incomplete_beta(df / 2, 0.5, x, square / (df + square) if square < df else 1 - x)


def student_t_density(t: float, df: float) -> float:
    """Density of Student's t with `df` degrees of freedom at `t`."""
    log_constant = math.lgamma((df + 1) / 2) - math.lgamma(df / 2) - 0.5 * math.log(df * math.pi)
    return math.exp(log_constant - (df + 1) / 2 * math.log1p(t * t / df))


@lru_cache(maxsize=1024)
def student_t_quantile(probability: float, df: float) -> float:
    """The value that Student's t stays below with this probability, for 0.5 ≤ probability < 1.

    Newton's method on the logs of t and of the tail, where the tail is nearly straight, kept between bounds. It begins
    at the normal quantile, widened for few degrees of freedom (Abramowitz & Stegun 26.7.5).
    """
    if not 0.5 <= probability < 1:
        raise ValueError(f"probability must be at least 0.5 and below 1, not {probability}")
    if df <= 0:
        raise ValueError(f"degrees of freedom must be above 0, not {df}")
    tail = 1 - probability
    if tail == 0.5:
        return 0.0
    log_constant = math.lgamma((df + 1) / 2) - math.lgamma(df / 2) - 0.5 * math.log(df * math.pi)
    low, high = -40.0, max(10.0, 700.0 / max(1.0, df))
    z = _NORMAL.inv_cdf(probability)
    log_t = min(high, math.log(z + (z**3 + z) / (4 * df) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * df * df)))
    for _ in range(200):
        t = math.exp(log_t)
        current = student_t_tail(t, df)
        if current > tail:
            low = log_t
        else:
            high = log_t
        density = math.exp(log_constant - (df + 1) / 2 * math.log1p(t * t / df))
        step = math.log(current / tail) * current / (t * density) if current > 0 and density > 0 else math.inf
        if abs(step) < 1e-8:  # Each step has about the square of the error of the one before.
            log_t += step
            break
        log_t = log_t + step if low < log_t + step < high else (low + high) / 2
    return math.exp(log_t)


def _incomplete_beta(a: float, b: float, x: float, complement: float) -> float:
    """Regularised incomplete beta function I_x(a, b); `complement` is 1 - x, given so that no digits are lost.

    Continued fraction by Lentz's method (Press et al., Numerical Recipes, section 6.4).
    """
    if x <= 0:
        return 0.0
    if complement <= 0:
        return 1.0
    if x > (a + 1) / (a + b + 2):
        return 1 - _incomplete_beta(b, a, complement, x)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log(complement))
    tiny = 1e-300
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1) or tiny)
    fraction = d
    for m in range(1, 1000):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1 / (1 + term * d or tiny)
            c = 1 + term / c or tiny
            fraction *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return front * fraction / a


def digamma(x: float) -> float:
    """Derivative of log gamma, for x > 0 (recurrence and asymptotic series, Abramowitz & Stegun 6.3.5, 6.3.18)."""
    result = 0.0
    while x < 8:
        result -= 1 / x
        x += 1
    y = 1 / (x * x)
    series = y * (1 / 12 - y * (1 / 120 - y * (1 / 252 - y * (1 / 240 - y * (1 / 132 - y * 691 / 32760)))))
    return result + math.log(x) - 0.5 / x - series


def trigamma(x: float) -> float:
    """Second derivative of log gamma, for x > 0 (Abramowitz & Stegun 6.4.6, 6.4.12)."""
    result = 0.0
    while x < 8:
        result += 1 / (x * x)
        x += 1
    y = 1 / (x * x)
    series = y * (1 / 6 - y * (1 / 30 - y * (1 / 42 - y * (1 / 30 - y * (5 / 66 - y * 691 / 2730)))))
    return result + (1 + 0.5 / x + series) / x


def trigamma_inverse(value: float) -> float:
    """The x > 0 with trigamma(x) = value > 0, by Newton's method on 1 / trigamma (Smyth 2004, appendix)."""
    if value > 1e7:
        return 1 / math.sqrt(value)
    if value < 1e-6:
        return 1 / value
    x = 0.5 + 1 / value
    for _ in range(50):
        current = trigamma(x)
        slope = (trigamma(x * (1 + 1e-5)) - trigamma(x * (1 - 1e-5))) / (2e-5 * x)
        step = current * (1 - current / value) / slope
        x += step
        if abs(step) < 1e-9 * x:
            break
    return x
