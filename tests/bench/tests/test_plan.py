# SPDX-License-Identifier: MIT
"""What a run measures, and how long that takes."""
import types
import unittest


from bench import conditions, engines, environment, options, plan, samplers, sampling
from bench.catalogue import ALL_PROGRAMS, named

INTERPRETERS = {minor: types.SimpleNamespace(minor=minor, origin="pyenv")
                for minor in options.ALL_PYTHONS}


class Units(unittest.TestCase):
    def test_a_full_run_has_all_programs_on_three_versions(self):
        units = plan.units(INTERPRETERS, ALL_PROGRAMS, is_full=True)
        programs = {minor: [one.program.name for one in units
                            if one.interpreter.minor == minor and one.condition == conditions.USUAL]
                    for minor in INTERPRETERS}
        for minor, found in programs.items():
            if minor in plan.FULL_PYTHONS:
                self.assertEqual(len(found), len(ALL_PROGRAMS) - len(plan.LEFT_OUT), minor)
            else:
                self.assertEqual(sorted(found), sorted(plan.FEW_PROGRAMS), minor)

    def test_conditions_have_programs_that_are_measured_without(self):
        units = plan.units(INTERPRETERS, ALL_PROGRAMS, is_full=True)
        usual = {one.program.name for one in units if str(one).startswith("3.11 ")
                 and one.condition == conditions.USUAL}
        for condition in conditions.OTHERS:
            self.assertLessEqual({*condition.programs}, usual, condition.name)
        busy = [str(one) for one in units if one.condition.name == "beside busy loops"]
        self.assertEqual(busy, ["3.11 %s beside busy loops" % name for name in (
            "calls-10", "generators", "coroutines", "dying")])

    def test_what_is_near_its_limit_is_measured_again(self):
        units = plan.units(INTERPRETERS, named(["calls-10", "period"]), is_full=False)
        again = plan.again(units, lambda unit: str(unit) == "3.8 period")
        self.assertEqual(list(map(str, again)), ["3.8 period second run", "3.8 period third run"])

    def test_requested_programs_are_measured_in_full(self):
        programs = named(["flat-10", "shared-30"])
        units = plan.units(INTERPRETERS, programs, is_full=False)
        self.assertEqual(len(units), 2 * len(INTERPRETERS))

    def test_conditions_without_rights_leave_out_bpf(self):
        as_nobody = next(one for one in conditions.OTHERS if one.name == "as nobody")
        self.assertEqual(as_nobody.engines(engines.ENGINES), ["preempt"])
        self.assertEqual(conditions.USUAL.engines(engines.ENGINES), list(engines.ENGINES))

    def test_every_name_is_a_program(self):
        names = {one.name for one in ALL_PROGRAMS}
        for name in plan.LEFT_OUT + plan.COMPARED_PROGRAMS:
            self.assertIn(name, names)


class Duration(unittest.TestCase):
    """Without the other profilers, which are few."""

    def args(self, **values):
        return types.SimpleNamespace(**{
            "turns": options.TURNS, "rates": options.USUAL_RATES, "stops": options.STOPS,
            "seconds_at": options.SECONDS.get, "engines": engines.ENGINES,
            "is_full": True, "takes_turns": True,
            "truth_seconds": options.TRUTH_SECONDS,
            "rates_in": lambda turn: options.Options.rates_in(self.args(), turn), **values})

    def duration_s(self, programs, interpreters, is_full, turns):
        tools = environment.Tools("build")
        units = plan.units(interpreters, programs, is_full)
        return sum(sampling.unit_s(tools, one, False, self.args(turns=turns)) for one in units)

    def setUp(self):
        self.addCleanup(setattr, sampling, "profilers_of", sampling.profilers_of)
        sampling.profilers_of = lambda *_: []

    def test_full_run_lasts_two_and_a_half_hours(self):
        self.assertLess(self.duration_s(ALL_PROGRAMS, INTERPRETERS, True, options.TURNS),
                        2.5 * 3600)

    def test_quick_run_lasts_five_minutes(self):
        quick = [one for one in ALL_PROGRAMS if one.quick]
        newest = {environment.NEWEST_PYTHON: INTERPRETERS[environment.NEWEST_PYTHON]}
        self.assertLess(self.duration_s(quick, newest, False, options.QUICK_TURNS), 300)

    def test_turns_give_enough_samples(self):
        for rate, count in ("1 kHz", 20000), ("100 Hz", 3000):
            self.assertEqual(samplers.RATES[rate] * options.SECONDS[rate] * options.TURNS, count)

    def test_engines_take_turns_where_all_is_measured(self):
        tools, unit = environment.Tools("build"), plan.Unit(INTERPRETERS["3.15"],
                                                            named(["calls-10"])[0])
        for takes_turns, nr_runs in (True, 10), (False, 20):
            found = sampling.samplers_for(tools, unit, False, self.args(takes_turns=takes_turns))
            self.assertEqual([one.name for one in found], ["pysample bpf", "pysample preempt"])
            for one in found:
                self.assertEqual(sum(one.runs_in(turn, "1 kHz") for turn in range(20)), nr_runs)
                self.assertTrue(all(one.runs_in(turn, "5 kHz") for turn in range(20)))
        self.assertEqual([one.runs_in(0, "100 Hz") for one in sampling.samplers_for(
            tools, unit, False, self.args())], [True, False])


if __name__ == "__main__":
    unittest.main()
