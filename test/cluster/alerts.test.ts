import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ensureBinaries } from '../../hack/binaries.ts';
import { run } from '../../hack/command.ts';
import { alerts, ALERTS_FILE } from '../../hack/monitoring.ts';
import { repositoryRoot } from '../../hack/repository.ts';

/** The alerts by the real promtool: what makes each fire, and what comes close and does not. */
let folder: string;
let promtool: string;
const RULES = join(repositoryRoot(), 'manifests', ALERTS_FILE);

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'alerts-'));
  ({ promtool } = await ensureBinaries(['promtool']));
});
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

/** Series, one value a minute, in promtool's notation (`0x5 1x9`: six times 0, then ten times 1). */
type Series = Readonly<Record<string, string>>;

/** A manager that is scraped. */
const UP: Series = { 'spillway_build_info{instance="a"}': '1x120' };

/** Seen after two hours. */
const CASES: Readonly<Record<string, { fires: Series; quiet: Series }>> = {
  SpillwayInvariantViolated: {
    fires: { 'spillway_invariant_violations_total{invariant="I1"}': '0x115 1x20' },
    quiet: { 'spillway_invariant_violations_total{invariant="I1"}': '0x50 1x80' },
  },
  SpillwayAnotherClusterAnswers: {
    fires: { 'spillway_invariant_violations_total{invariant="I3"}': '0x115 1x20' },
    quiet: { 'spillway_invariant_violations_total{invariant="I3"}': '7x130' },
  },
  SpillwayDeletionBreakerOpen: {
    fires: { 'spillway_deletion_breaker_open{node="east"}': '0x110 1x20' },
    quiet: { 'spillway_deletion_breaker_open{node="east"}': '1x110 0x20' },
  },
  SpillwayPodsKept: {
    fires: { 'spillway_pods_kept{node="east"}': '0x90 3x40' },
    quiet: { 'spillway_pods_kept{node="east"}': '0x110 3x20' },
  },
  SpillwayCopiesQuarantined: {
    fires: { 'spillway_pods_quarantined_total{node="east"}': '_x110 1x20' },
    quiet: { 'spillway_pods_quarantined_total{node="east"}': '_x50 1x80' },
  },
  SpillwayPodsDeletedInOutage: {
    fires: { 'spillway_pods_deleted_in_outage_total{node="east"}': '2x100 5x30' },
    quiet: { 'spillway_pods_deleted_in_outage_total{node="east"}': '2x130' },
  },
  SpillwayDown: {
    fires: { 'spillway_build_info{instance="a"}': '1x110 _x20' },
    quiet: { 'spillway_build_info{instance="a"}': '1x110 _x3 1x20' },
  },
  SpillwayRestarting: {
    fires: { 'process_start_time_seconds{instance="a"}': '1x100 2x4 3x4 4x20' },
    quiet: {
      'process_start_time_seconds{instance="a"}': '1x100 2x8 3x20',
      'process_start_time_seconds{instance="of-others"}': '1x100 2x4 3x4 4x20',
    },
  },
  SpillwayManagerBusy: {
    fires: { 'nodejs_eventloop_lag_p99_seconds{instance="a"}': '0.02x100 0.8x30' },
    quiet: {
      'nodejs_eventloop_lag_p99_seconds{instance="a"}': '0.02x115 0.8x30',
      'nodejs_eventloop_lag_p99_seconds{instance="of-others"}': '9x130',
    },
  },
  SpillwayQueueSlow: {
    fires: {
      'workqueue_queue_duration_seconds_bucket{instance="a",name="pods-east",le="10"}': '0x130',
      'workqueue_queue_duration_seconds_bucket{instance="a",name="pods-east",le="30"}': '0+5x130',
      'workqueue_queue_duration_seconds_bucket{instance="a",name="pods-east",le="+Inf"}': '0+5x130',
    },
    quiet: {
      'workqueue_queue_duration_seconds_bucket{instance="a",name="pods-east",le="10"}': '0+5x130',
      'workqueue_queue_duration_seconds_bucket{instance="a",name="pods-east",le="+Inf"}': '0+5x130',
      'workqueue_queue_duration_seconds_bucket{instance="of-others",name="x",le="10"}': '0x130',
      'workqueue_queue_duration_seconds_bucket{instance="of-others",name="x",le="+Inf"}': '0+5x130',
    },
  },
  SpillwayWorkStuck: {
    fires: { 'workqueue_longest_running_processor_seconds{instance="a",name="pods-east"}': '0+60x130' },
    quiet: {
      'workqueue_longest_running_processor_seconds{instance="a",name="pods-east"}': '200x130',
      'workqueue_longest_running_processor_seconds{instance="of-others",name="x"}': '0+60x130',
    },
  },
  SpillwayHandlerErrors: {
    fires: { 'kube_informer_handler_errors_total{cluster="east",resource="pods"}': '_x115 1x20' },
    quiet: { 'kube_informer_handler_errors_total{cluster="east",resource="pods"}': '1x130' },
  },
  SpillwayMemberUnreachable: {
    fires: {
      'spillway_member_reachable{member="east",instance="a"}': '1x130',
      'spillway_member_reachable{member="east",instance="b"}': '1x110 0x20',
      'spillway_member_reserved_pods{member="east"}': '0x130',
    },
    quiet: {
      'spillway_member_reachable{member="east"}': '1x110 0x3 1x20',
      'spillway_member_reserved_pods{member="east"}': '0x130',
    },
  },
  SpillwayMemberUnattended: {
    fires: {
      'spillway_member_reachable{member="east"}': '1x130',
      'spillway_member_reserved_pods{member="east"}': '0x110',
      'spillway_member_reserved_pods{member="west"}': '0x130',
    },
    quiet: {
      'spillway_member_reachable{member="east"}': '1x130',
      'spillway_member_reserved_pods{member="east"}': '0x110 _x3 0x20',
    },
  },
  SpillwayRoomUnknown: {
    fires: {
      'spillway_member_reachable{member="east"}': '1x130',
      'spillway_member_reserved_pods{member="east"}': '0x130',
      'spillway_member_observed{member="east"}': '1x100 0x30',
    },
    quiet: {
      'spillway_member_reachable{member="east"}': '1x130',
      'spillway_member_reserved_pods{member="east"}': '0x130',
      'spillway_member_observed{member="east"}': '1x115 0x30',
    },
  },
  SpillwayCacheStale: {
    fires: { 'kube_informer_stale_seconds{cluster="east",resource="pods"}': '10x105 100+60x20' },
    quiet: { 'kube_informer_stale_seconds{cluster="east",resource="pods"}': '40x130' },
  },
  SpillwayListsRefused: {
    fires: { 'kube_informer_lists_refused_total{cluster="host",resource="pods",reason="backward"}': '0x100 0+1x30' },
    quiet: { 'kube_informer_lists_refused_total{cluster="host",resource="pods",reason="backward"}': '0x110 2x30' },
  },
  SpillwayCredentialsRefused: {
    fires: { 'kube_client_requests_total{cluster="east",verb="GET",resource="pods",code="401"}': '0x90 0+1x40' },
    quiet: { 'kube_client_requests_total{cluster="east",verb="GET",resource="pods",code="401"}': '0x50 1x80' },
  },
  SpillwayWritesForbidden: {
    fires: { 'kube_client_requests_total{cluster="east",verb="POST",resource="secrets",code="403"}': '0x60 0+1x70' },
    quiet: {
      'kube_client_requests_total{cluster="east",verb="POST",resource="secrets",code="403"}': '0x100 0+1x70',
      // Members refuse pods for many reasons, which are on the pods.
      'kube_client_requests_total{cluster="east",verb="POST",resource="pods",code="403"}': '0+1x130',
      'kube_client_requests_total{cluster="east",verb="GET",resource="nodes",code="403"}': '0+1x130',
    },
  },
  SpillwayHostApiErrors: {
    fires: {
      'kube_client_requests_total{cluster="host",verb="GET",resource="pods",code="200"}': '0+10x130',
      'kube_client_requests_total{cluster="host",verb="GET",resource="pods",code="503"}': '0x90 0+5x40',
    },
    quiet: {
      'kube_client_requests_total{cluster="host",verb="GET",resource="pods",code="200"}': '0+10x130',
      'kube_client_requests_total{cluster="host",verb="GET",resource="pods",code="404"}': '0+10x130',
      'kube_client_requests_total{cluster="host",verb="GET",resource="pods",code="503"}': '0+1x130',
      'kube_client_requests_total{cluster="east",verb="GET",resource="pods",code="503"}': '0+10x130',
    },
  },
  SpillwayNodeCertificateExpiring: {
    // Time begins with the series.
    fires: { 'spillway_node_certificate_expiry_timestamp_seconds{node="east"}': '14000x130' },
    quiet: {
      'spillway_node_certificate_expiry_timestamp_seconds{node="east"}': '604800x130',
      'spillway_node_certificate_expiry_timestamp_seconds{node="without"}': '0x130',
    },
  },
  SpillwayPodTokensFailing: {
    fires: { 'spillway_pod_tokens_total{member="east",outcome="failed"}': '0x80 0+1x50' },
    quiet: {
      'spillway_pod_tokens_total{member="east",outcome="failed"}': '0x80 1x50',
      'spillway_pod_tokens_total{member="east",outcome="issued"}': '0+9x130',
    },
  },
  SpillwayClaimsFailing: {
    fires: { 'spillway_claim_steps_total{member="east",step="create",outcome="failed"}': '0x80 0+1x50' },
    quiet: {
      'spillway_claim_steps_total{member="east",step="create",outcome="failed"}': '0x80 1x50',
      'spillway_claim_steps_total{member="east",step="create",outcome="done"}': '0+9x130',
    },
  },
  SpillwayStatusFought: {
    fires: { 'spillway_pod_status_corrections_held_total{node="east"}': '0x80 0+1x50' },
    quiet: { 'spillway_pod_status_corrections_held_total{node="east"}': '0x115 1x50' },
  },
  SpillwayTolerationsRefused: {
    fires: { 'spillway_outage_tolerations_total{node="east",result="refused"}': '_x100 1x30' },
    quiet: { 'spillway_outage_tolerations_total{node="east",result="given"}': '0+1x130' },
  },
  SpillwayKubeletRequestsDenied: {
    fires: { 'spillway_kubelet_denied_total{reason="forbidden"}': '0x60 0+1x70' },
    quiet: { 'spillway_kubelet_denied_total{reason="forbidden"}': '0x100 0+1x70' },
  },
  SpillwayExtenderFailing: {
    fires: {
      'spillway_scheduler_requests_total{verb="filter",result="answered"}': '0+10x130',
      'spillway_scheduler_requests_total{verb="filter",result="failed"}': '0x90 0+2x40',
    },
    quiet: {
      'spillway_scheduler_requests_total{verb="filter",result="answered"}': '0+100x130',
      'spillway_scheduler_requests_total{verb="filter",result="notReady"}': '0+1x130',
    },
  },
  SpillwayExtenderSlow: {
    fires: {
      'spillway_scheduler_request_duration_seconds_bucket{verb="filter",le="0.5"}': '0+5x130',
      'spillway_scheduler_request_duration_seconds_bucket{verb="filter",le="1"}': '0+10x130',
      'spillway_scheduler_request_duration_seconds_bucket{verb="filter",le="+Inf"}': '0+10x130',
    },
    quiet: {
      'spillway_scheduler_request_duration_seconds_bucket{verb="filter",le="0.1"}': '0+10x130',
      'spillway_scheduler_request_duration_seconds_bucket{verb="filter",le="0.5"}': '0+10x130',
      'spillway_scheduler_request_duration_seconds_bucket{verb="filter",le="+Inf"}': '0+10x130',
    },
  },
  SpillwayWebhookRefusing: {
    fires: { 'spillway_admission_reviews_total{outcome="malformed"}': '0x90 0+1x40' },
    quiet: {
      'spillway_admission_reviews_total{outcome="malformed"}': '3x130',
      'spillway_admission_reviews_total{outcome="changed"}': '0+9x130',
    },
  },
  SpillwayDeschedulerPaused: {
    fires: { spillway_descheduler_paused: '0x110 1x20' },
    quiet: { spillway_descheduler_paused: '1x110 0x20' },
  },
  SpillwayMovesStopped: {
    fires: { spillway_descheduler_stopped: '0x50 1x70' },
    quiet: { spillway_descheduler_stopped: '0x100 1x20' },
  },
  SpillwayMovesHeld: {
    fires: { 'spillway_descheduler_moves_total{strategy="Drain",member="east",outcome="held"}': '_x110 1x20' },
    quiet: {
      'spillway_descheduler_moves_total{strategy="Drain",member="east",outcome="held"}': '1x130',
      'spillway_descheduler_moves_total{strategy="Drain",member="east",outcome="moved"}': '0+3x130',
    },
  },
};

/** Has promtool say which alerts fire after two hours, for each case by itself. Throws with its words when others do. */
async function judge(cases: Readonly<Record<string, { series: Series; firing: readonly string[] }>>): Promise<string> {
  const file = join(folder, 'test.yaml');
  const tests = Object.entries(cases).map(([name, { series, firing }]) => ({
    name,
    interval: '1m',
    input_series: Object.entries({ ...UP, ...series }).map(([one, values]) => ({ series: one, values })),
    promql_expr_test: [
      {
        expr: 'count by (alertname) (ALERTS{alertstate="firing"})',
        eval_time: '2h',
        exp_samples: firing.map((alert) => ({ labels: `{alertname="${alert}"}`, value: 1 })),
      },
    ],
  }));
  writeFileSync(file, stringify({ rule_files: [RULES], evaluation_interval: '1m', tests }));
  return await run(promtool, ['test', 'rules', file]);
}

test('the rules are sound', async () => {
  const count = alerts().length;
  const said = await run(promtool, ['check', 'rules', '--lint=all', '--lint-fatal', RULES]);
  expect(said).toContain(`SUCCESS: ${String(count)} rules found`);
  expect(Object.keys(CASES)).toEqual(alerts().map(({ alert }) => alert));
});

const casesOf = (which: 'fires' | 'quiet') =>
  Object.fromEntries(
    Object.entries(CASES).map(([alert, series]) => [
      alert,
      { series: series[which], firing: which === 'fires' ? [alert] : [] },
    ]),
  );

test('each alert fires, and no other with it', async () => {
  expect(await judge(casesOf('fires'))).toContain('SUCCESS');
});

test('what comes close fires nothing', async () => {
  expect(await judge(casesOf('quiet'))).toContain('SUCCESS');
});

test('a case that is not as it is said is told', async () => {
  const { fires } = CASES['SpillwayPodsKept'] ?? { fires: {} };
  await expect(judge({ SpillwayPodsKept: { series: fires, firing: [] } })).rejects.toThrow('FAILED');
});
