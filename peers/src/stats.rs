//! Ratios over several placements: medians and confidence intervals.

/// A ratio of times, and where it lies.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Estimate {
    /// The median over the placements.
    pub ratio: f64,
    /// The 95% confidence interval, if there is more than one placement.
    pub interval: Option<(f64, f64)>,
}

impl Estimate {
    /// The estimate from the ratio at each placement. The interval is that of Student's t distribution for the
    /// mean of their logarithms.
    pub fn of(ratios: &[f64]) -> Estimate {
        Estimate { ratio: median(ratios), interval: interval(ratios) }
    }

    /// The geometric mean over programs, each with its ratio at each placement; those without are left out. The
    /// interval is that of the geometric mean at each placement.
    pub fn mean(programs: &[Vec<f64>]) -> Estimate {
        let programs: Vec<&Vec<f64>> =
            programs.iter().filter(|ratios| !ratios.is_empty()).collect();
        let medians: Vec<f64> = programs.iter().map(|ratios| median(ratios)).collect();
        let n_placements = programs.iter().map(|ratios| ratios.len()).min().unwrap_or(0);
        let at = |placement: usize| {
            let ratios: Vec<f64> = programs.iter().map(|ratios| ratios[placement]).collect();
            geometric_mean(&ratios)
        };
        let means: Vec<f64> = (0..n_placements).map(at).collect();
        Estimate { ratio: geometric_mean(&medians), interval: interval(&means) }
    }
}

/// The middle value, or the geometric mean of the two in the middle.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() % 2 {
        1 => sorted[middle],
        _ => geometric_mean(&sorted[middle - 1..=middle]),
    }
}

/// The geometric mean.
pub fn geometric_mean(values: &[f64]) -> f64 {
    let sum: f64 = values.iter().map(|value| value.ln()).sum();
    (sum / values.len() as f64).exp()
}

fn interval(ratios: &[f64]) -> Option<(f64, f64)> {
    let n = ratios.len() as f64;
    let quantile = quantile(ratios.len().checked_sub(1)?)?;
    let logs: Vec<f64> = ratios.iter().map(|ratio| ratio.ln()).collect();
    let mean = logs.iter().sum::<f64>() / n;
    let variance = logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let half = quantile * (variance / n).sqrt();
    Some(((mean - half).exp(), (mean + half).exp()))
}

/// The 97.5% quantile of Student's t distribution, by degrees of freedom.
fn quantile(degrees: usize) -> Option<f64> {
    const QUANTILES: [f64; 15] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
        2.145, 2.131,
    ];
    // That of the largest number in the table is slightly too wide for more.
    QUANTILES.get(degrees.checked_sub(1)?.min(QUANTILES.len() - 1)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 0.001
    }

    #[test]
    fn intervals_are_those_of_students_t() {
        // Logarithms -1, 0 and 1 have the standard deviation 1.
        let e = std::f64::consts::E;
        let estimate = Estimate::of(&[e, 1.0, 1.0 / e]);
        let (low, high) = estimate.interval.expect("there are three");
        assert!(close(estimate.ratio, 1.0));
        assert!(close(low.ln(), -4.303 / 3f64.sqrt()) && close(high.ln(), 4.303 / 3f64.sqrt()));
    }

    #[test]
    fn one_ratio_has_no_interval() {
        assert_eq!(Estimate::of(&[0.5]), Estimate { ratio: 0.5, interval: None });
    }

    #[test]
    fn medians_of_even_numbers_are_between_the_two_in_the_middle() {
        assert!(close(median(&[8.0, 1.0, 2.0, 100.0]), 4.0));
    }

    #[test]
    fn means_leave_out_programs_without_ratios() {
        let estimate = Estimate::mean(&[vec![2.0, 2.0, 2.0], vec![], vec![8.0, 8.0, 8.0]]);
        let (low, high) = estimate.interval.expect("there are three placements");
        assert!(close(estimate.ratio, 4.0) && close(low, 4.0) && close(high, 4.0));
    }
}
