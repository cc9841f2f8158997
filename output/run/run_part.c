/* SPDX-License-Identifier: MIT */
#include "output/run/run_part.h"

void stats_subtract(struct sampler_stats *stats, const struct sampler_stats *earlier)
{
	if (!earlier->start_ns)
		return;
	stats->ticks -= earlier->ticks;
	stats->late_ticks -= earlier->late_ticks;
	stats->failed_ticks -= earlier->failed_ticks;
	stats->samples -= earlier->samples;
	stats->approximate -= earlier->approximate;
	for (int loss = 0; loss < NR_SAMPLE_LOSSES; loss++)
		stats->lost[loss] -= earlier->lost[loss];
	stats->cached -= earlier->cached;
	stats->writes -= earlier->writes;
	stats->reads -= earlier->reads;
	stats->clock_reads -= earlier->clock_reads;
	stats->clockless -= earlier->clockless;
	stats->rough_clocks -= earlier->rough_clocks;
	stats->other_syscalls -= earlier->other_syscalls;
	stats->paused_ns -= earlier->paused_ns;
	stats->active_ns -= earlier->active_ns;
	stats->start_ns = earlier->end_ns;
	stats->first_sample_ns = 0;
	histogram_subtract(&stats->lateness, &earlier->lateness);
	stats->p50_lateness_ns = histogram_quantile(&stats->lateness, 500);
	stats->p99_lateness_ns = histogram_quantile(&stats->lateness, 990);
}

static void account_subtract(struct profile_account *account, const struct profile_account *earlier)
{
	account->nr_samples -= earlier->nr_samples;
	account->nr_shown -= earlier->nr_shown;
	account->nr_in_jit -= earlier->nr_in_jit;
	account->wall_ns -= earlier->wall_ns;
	account->cpu_ns -= earlier->cpu_ns;
	account->nr_cpu_measured -= earlier->nr_cpu_measured;
	account->nr_approximate -= earlier->nr_approximate;
	account->nr_idle -= earlier->nr_idle;
	account->idle_ns -= earlier->idle_ns;
	account->nr_idle_threads -= earlier->nr_idle_threads;
}

static void native_subtract(struct run_native *native, const struct run_native *earlier)
{
	native->nr_stacks -= earlier->nr_stacks;
	native->nr_c_gaps -= earlier->nr_c_gaps;
	native->nr_python_gaps -= earlier->nr_python_gaps;
	native->nr_copies -= earlier->nr_copies;
	native->nr_lost_copies -= earlier->nr_lost_copies;
	native->nr_without_copy -= earlier->nr_without_copy;
	native->nr_foreign_copies -= earlier->nr_foreign_copies;
	native->nr_refused -= earlier->nr_refused;
}

void run_subtract(struct run *run, const struct run *earlier)
{
	struct run_info *info = &run->info;

	if (!earlier->stats.start_ns)
		return;
	if (info->start_unix_ns)
		info->start_unix_ns += earlier->stats.end_ns - run->stats.start_ns;
	stats_subtract(&run->stats, &earlier->stats);
	account_subtract(&info->account, &earlier->info.account);
	info->shown_ns -= earlier->info.shown_ns;
	native_subtract(&info->native, &earlier->info.native);
	info->resources.cpu_user_ns -= earlier->info.resources.cpu_user_ns;
	info->resources.cpu_sys_ns -= earlier->info.resources.cpu_sys_ns;
}
