//! Means of times and of ratios, with confidence intervals.
//!
//! Times are compared by ratios, so all of it works on logarithms: a mean is geometric. An interval is that of Student's
//! t distribution for the mean of the logarithms. The rounds of one report are paired: a round's ratio is that of two times
//! that were measured one after the other, so that the speed of the machine cancels. Two reports are not paired, and their
//! difference has Welch's degrees of freedom.

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// The probability that an interval contains the true value.
pub const CONFIDENCE: f64 = 0.95;

/// A figure with its confidence interval.
#[derive(Copy, Clone, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// The figure.
    pub value: f64,
    /// Lower and upper end of the interval; `None` with a single round.
    pub interval: Option<[f64; 2]>,
}

impl Estimate {
    /// Whether the figure is below 1, beyond noise. Without an interval the figure itself decides.
    pub fn is_below_one(&self) -> bool {
        self.interval.map_or(self.value, |[_, high]| high) < 1.0
    }

    /// Whether the figure is above 1, beyond noise. Without an interval the figure itself decides.
    pub fn is_above_one(&self) -> bool {
        self.interval.map_or(self.value, |[low, _]| low) > 1.0
    }

    /// Half of the interval's width, in percent of the figure.
    pub fn percent(&self) -> Option<f64> {
        self.interval.map(|[low, high]| ((high / low).sqrt() - 1.0) * 100.0)
    }
}

/// The mean of logarithms.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct LogMean {
    mean: f64,
    /// The variance of the mean. Without degrees of freedom it is unknown, and zero here.
    variance: f64,
    freedom: f64,
}

impl LogMean {
    /// The mean of some samples, at least one, all of them positive.
    pub fn of(samples: impl Iterator<Item = f64>) -> LogMean {
        let logs: Vec<f64> = samples.map(f64::ln).collect();
        let n = logs.len() as f64;
        let mean = logs.iter().sum::<f64>() / n;
        let squares: f64 = logs.iter().map(|log| (log - mean).powi(2)).sum();
        let freedom = n - 1.0;
        let variance = if freedom > 0.0 { squares / freedom / n } else { 0.0 };
        LogMean { mean, variance, freedom }
    }

    /// The mean of independent means, at least one.
    pub fn average(means: &[LogMean]) -> LogMean {
        let n = means.len() as f64;
        let mean = means.iter().map(|part| part.mean).sum::<f64>() / n;
        LogMean { mean, ..LogMean::sum(means, 1.0 / n) }
    }

    /// The mean of the ratio of one time to another that was measured independently of it.
    pub fn over(self, other: LogMean) -> LogMean {
        LogMean { mean: self.mean - other.mean, ..LogMean::sum(&[self, other], 1.0) }
    }

    /// The variance of a sum of independent means times a factor, with degrees of freedom by Welch and Satterthwaite.
    fn sum(means: &[LogMean], factor: f64) -> LogMean {
        let variance: f64 = means.iter().map(|part| part.variance).sum();
        let freedom = if means.iter().any(|part| part.freedom < 1.0) {
            0.0
        } else if variance > 0.0 {
            let weights = means.iter().map(|part| part.variance.powi(2) / part.freedom);
            variance.powi(2) / weights.sum::<f64>()
        } else {
            means.iter().map(|part| part.freedom).sum()
        };
        LogMean { mean: 0.0, variance: variance * factor * factor, freedom }
    }

    /// The geometric mean, with an interval that contains the true one with this probability.
    pub fn estimate(self, confidence: f64) -> Estimate {
        let half = || {
            let t = StudentsT::new(0.0, 1.0, self.freedom).ok()?;
            Some(t.inverse_cdf(1.0 - (1.0 - confidence) / 2.0) * self.variance.sqrt())
        };
        let interval = half().map(|half| [(self.mean - half).exp(), (self.mean + half).exp()]);
        Estimate { value: self.mean.exp(), interval }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_near(found: f64, expected: f64) {
        assert!((found / expected - 1.0).abs() < 1e-3, "{found}, expected {expected}");
    }

    #[test]
    fn an_interval_is_that_of_students_t() {
        // Logarithms 0, 0.1, 0.2, 0.3, 0.4: mean 0.2, standard error 0.0707, t(4) = 2.7764.
        let estimate = LogMean::of((0..5).map(|i| (f64::from(i) / 10.0).exp())).estimate(0.95);
        let [low, high] = estimate.interval.expect("there are five samples");
        assert_near(estimate.value, 0.2f64.exp());
        assert_near(low, (0.2f64 - 2.7764 * 0.070_711).exp());
        assert_near(high, (0.2f64 + 2.7764 * 0.070_711).exp());
        assert!(estimate.is_above_one() && !estimate.is_below_one());
    }

    #[test]
    fn independent_means_have_welchs_degrees_of_freedom() {
        // Equal variances of five samples each: 8 degrees of freedom, t(8) = 2.3060.
        let samples = |mean: f64| (0..5).map(move |i| (mean + f64::from(i) / 10.0).exp());
        let ratio = LogMean::of(samples(1.0)).over(LogMean::of(samples(0.5)));
        let [low, _] = ratio.estimate(0.95).interval.expect("there are ten samples");
        assert_near(low, (0.5 - 2.3060 * 0.1f64).exp());
    }

    #[test]
    fn one_sample_has_no_interval() {
        let one = LogMean::of([2.0].into_iter());
        assert_eq!(one.estimate(0.95).interval, None);
        let pair = LogMean::of([2.0, 2.0].into_iter());
        assert_eq!(pair.estimate(0.95).interval, Some([2.0, 2.0]));
        assert_eq!(LogMean::average(&[one, pair]).estimate(0.95).interval, None);
        assert_near(LogMean::average(&[pair, pair]).estimate(0.95).value, 2.0);
    }

    #[test]
    fn nineteen_of_twenty_intervals_contain_the_true_mean() {
        // Sums of twelve uniform numbers of a linear congruential generator are about normal.
        let mut state = 1u64;
        let mut uniform = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 11) as f64 / (1u64 << 53) as f64
        };
        let mut normal = || (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
        let n_inside = (0..4000).filter(|_| {
            let samples: Vec<f64> = (0..5).map(|_| (3.0 + normal() / 10.0).exp()).collect();
            let estimate = LogMean::of(samples.into_iter()).estimate(0.95);
            let [low, high] = estimate.interval.expect("there are five samples");
            (low..=high).contains(&3f64.exp())
        });
        let n_inside = n_inside.count();
        assert!((3740..=3860).contains(&n_inside), "{n_inside} of 4000");
    }
}
