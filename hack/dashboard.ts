/** A picture of one or more queries. */
export interface Panel {
  readonly title: string;
  readonly about: string;
  readonly kind: 'timeseries' | 'stat';
  /** As Grafana names units. */
  readonly unit: 'short' | 's' | 'bytes' | 'ops' | 'percentunit' | 'binBps';
  /** PromQL and the legend of its series. */
  readonly queries: readonly (readonly [expr: string, legend: string])[];
  /** From which value on it is red. */
  readonly alarm?: number;
  /** Of counters that are not there before they first count: nothing is shown for as long as nothing happened. */
  readonly seldom?: true;
}

interface Row {
  readonly title: string;
  readonly panels: readonly Panel[];
}

const MEMBER = 'member=~"$member"';
const CLUSTER = 'cluster=~"host|$member"';
/** Names that other programs use, too, are told apart by the instance. */
const OURS = 'and on (instance) spillway_build_info';

const series = (title: string, unit: Panel['unit'], about: string, ...queries: Panel['queries']): Panel => ({
  title,
  about,
  kind: 'timeseries',
  unit,
  queries,
});
const number = (title: string, about: string, expr: string, alarm?: number): Panel => ({
  title,
  about,
  kind: 'stat',
  unit: 'short',
  queries: [[expr, '']],
  ...(alarm === undefined ? {} : { alarm }),
});
/** Of a counter that is not there before it first counts. */
const seldom = (panel: Panel): Panel => ({ ...panel, seldom: true });
/** Of such a counter: 0 for as long as nothing happened. */
const howMany = (title: string, about: string, metric: string): Panel =>
  seldom(
    number(title, `${about} Within the time that is shown.`, `sum(increase(${metric}[$__range])) or vector(0)`, 1),
  );
const quantile = (q: number, metric: string, by: string, filter = ''): string =>
  `histogram_quantile(${q}, sum by (${by}, le) (rate(${metric}_bucket${filter}[$__rate_interval])))`;

/** All that is on the dashboard, row by row. */
export const ROWS: readonly Row[] = [
  {
    title: 'Fleet',
    panels: [
      number('Replicas', 'Replicas of the manager that are scraped.', 'count(spillway_build_info)'),
      number('Members', 'Members that some replica follows.', 'count(count by (member) (spillway_member_reachable))'),
      number(
        'Not reachable',
        'Members that do not answer some replica.',
        'count(min by (member) (spillway_member_reachable) == 0) or vector(0)',
        1,
      ),
      number(
        'Nobody acts',
        'Members that answer and for which no replica works.',
        'count((max by (member) (spillway_member_reachable) == 1) unless on (member) count by (member) (spillway_member_reserved_pods)) or vector(0)',
        1,
      ),
      series('Reachable', 'short', 'By member: 1 while every replica reaches it.', [
        `min by (member) (spillway_member_reachable{${MEMBER}})`,
        '{{member}}',
      ]),
      series('Probes', 's', 'Time until a member answered, 99 of 100.', [
        quantile(0.99, 'spillway_member_probe_duration_seconds', 'member', `{${MEMBER}}`),
        '{{member}}',
      ]),
      series(
        'Node certificates',
        's',
        'Time until the certificates of virtual nodes end; renewed when 70 % of their life is over.',
        ['min by (node) (spillway_node_certificate_expiry_timestamp_seconds > 0) - time()', '{{node}}'],
      ),
    ],
  },
  {
    title: 'Room',
    panels: [
      series('More pods that fit', 'short', 'By the shapes of pods that were asked about last.', [
        `max by (member, shape) (spillway_member_shape_slots{${MEMBER}})`,
        '{{member}} {{shape}}',
      ]),
      series('Largest free slot: CPU', 'short', 'Cores that one node of the member has free.', [
        `max by (member) (spillway_member_largest_free_slot{${MEMBER},resource="cpu"})`,
        '{{member}}',
      ]),
      series('Largest free slot: memory', 'bytes', 'Memory that one node of the member has free.', [
        `max by (member) (spillway_member_largest_free_slot{${MEMBER},resource="memory"})`,
        '{{member}}',
      ]),
      series('Room set aside', 'short', 'Pods on their way to the member.', [
        `max by (member) (spillway_member_reserved_pods{${MEMBER}})`,
        '{{member}}',
      ]),
      series('Pods of the member', 'short', 'All pods that are there, ours and others.', [
        `max by (cluster) (kube_informer_objects{cluster=~"$member",resource="pods"})`,
        '{{cluster}}',
      ]),
      seldom(
        series(
          'Services and budgets',
          'short',
          'Of the host, that stand in the member; imports are Services that clusters export to each other.',
          [`max by (member) (spillway_service_copies{${MEMBER}})`, 'services {{member}}'],
          [`max by (member) (spillway_budget_mirrors{${MEMBER}})`, 'budgets {{member}}'],
          ['max by (cluster) (spillway_service_imports{cluster=~"$member|local"})', 'imports {{cluster}}'],
        ),
      ),
    ],
  },
  {
    title: 'Pods',
    panels: [
      series('Going down', 'ops', 'Pods created in members and deleted there.', [
        'sum by (node, action) (rate(spillway_pod_actions_total{action=~"create|delete-member|collect"}[$__rate_interval]))',
        '{{node}} {{action}}',
      ]),
      series('Coming up', 'ops', 'Status written to host pods, deletions ended, pods called lost.', [
        'sum by (node, action) (rate(spillway_pod_actions_total{action=~"patch-status|finish-deletion|report-lost"}[$__rate_interval]))',
        '{{node}} {{action}}',
      ]),
      series('Held back', 'ops', 'Pods that wait, by the reason that their users see.', [
        'sum by (node, reason) (rate(spillway_pod_holds_total[$__rate_interval]))',
        '{{node}} {{reason}}',
      ]),
      seldom(
        series('Tokens of service accounts', 'ops', 'Brought to members.', [
          `sum by (member, outcome) (rate(spillway_pod_tokens_total{${MEMBER}}[$__rate_interval]))`,
          '{{member}} {{outcome}}',
        ]),
      ),
      seldom(
        series('logs, exec, port-forward', 'short', 'Open streams.', [
          'sum by (route) (spillway_kubelet_open_streams)',
          '{{route}}',
        ]),
      ),
      seldom(
        series('Bytes of streams', 'binBps', 'Both ways.', [
          'sum by (route, direction) (rate(spillway_kubelet_stream_bytes_total[$__rate_interval]))',
          '{{route}} {{direction}}',
        ]),
      ),
    ],
  },
  {
    title: 'Placement and moves',
    panels: [
      series('Decisions', 'ops', 'Where pods go, by the rules that they follow.', [
        'sum by (rules, outcome) (rate(spillway_scheduler_decisions_total[$__rate_interval]))',
        '{{rules}} {{outcome}}',
      ]),
      series('Answers to schedulers', 'ops', 'By what came of the question.', [
        'sum by (verb, result) (rate(spillway_scheduler_requests_total[$__rate_interval]))',
        '{{verb}} {{result}}',
      ]),
      series('Time of answers', 's', '99 of 100; schedulers wait a second.', [
        quantile(0.99, 'spillway_scheduler_request_duration_seconds', 'verb'),
        '{{verb}}',
      ]),
      series('Moves', 'ops', 'Pods moved out of members, and held.', [
        `sum by (member, strategy, outcome) (rate(spillway_descheduler_moves_total{${MEMBER}}[$__rate_interval]))`,
        '{{member}} {{strategy}} {{outcome}}',
      ]),
      series('Out of their ReplicaSet', 'short', 'Pods that go once others are Ready in their places.', [
        'sum(spillway_descheduler_released_pods)',
        'pods',
      ]),
      seldom(
        series('Gangs', 'ops', 'Placed, and timed out.', [
          'sum by (outcome) (rate(spillway_gangs_total[$__rate_interval]))',
          '{{outcome}}',
        ]),
      ),
    ],
  },
  {
    title: 'Safety',
    panels: [
      number(
        'Stopped by guards',
        'Things that must never happen: docs/invariants.md. Within the time that is shown.',
        'sum(increase(spillway_invariant_violations_total[$__range]))',
        1,
      ),
      number('Breakers open', 'Virtual nodes whose deletions wait.', 'sum(spillway_deletion_breaker_open)', 1),
      number('Copies kept', 'Pods in members that wait for your word.', 'sum(spillway_pods_kept)', 1),
      howMany(
        'Left alone',
        'Pods in members whose host pods are not known to be gone.',
        'spillway_pods_quarantined_total',
      ),
      number('Moves paused', '1 while most members do not answer.', 'max(spillway_descheduler_paused)', 1),
      number('Moves stopped', '1 while somebody has stopped all moves.', 'max(spillway_descheduler_stopped)', 1),
      howMany(
        'Deleted in an outage',
        'Pods that Kubernetes deleted while no manager ran.',
        'spillway_pods_deleted_in_outage_total',
      ),
      howMany('Lists refused', 'Answers of API servers that were not believed.', 'kube_informer_lists_refused_total'),
      howMany('Handler errors', 'Mistakes in Spillway.', 'kube_informer_handler_errors_total'),
    ],
  },
  {
    title: 'Lag',
    panels: [
      series('Waiting in queues', 's', '99 of 100 keys.', [
        `histogram_quantile(0.99, sum by (name, le) (rate(workqueue_queue_duration_seconds_bucket[$__rate_interval]) ${OURS}))`,
        '{{name}}',
      ]),
      series('Length of queues', 'short', 'Keys that wait.', [`sum by (name) (workqueue_depth ${OURS})`, '{{name}}']),
      series('Work', 's', 'Time that a key takes, 99 of 100.', [
        `histogram_quantile(0.99, sum by (name, le) (rate(workqueue_work_duration_seconds_bucket[$__rate_interval]) ${OURS}))`,
        '{{name}}',
      ]),
      series('Age of caches', 's', 'Since watches last proved to be alive: at most 40 s in peace.', [
        `max by (cluster, resource) (kube_informer_stale_seconds{${CLUSTER}})`,
        '{{cluster}} {{resource}}',
      ]),
      series('Event loop', 's', 'How late the process is, 99 of 100.', [
        `nodejs_eventloop_lag_p99_seconds ${OURS}`,
        '{{instance}}',
      ]),
      series(
        'Memory and CPU',
        'short',
        'Of each replica: GiB, and cores.',
        [`process_resident_memory_bytes / 2^30 ${OURS}`, '{{instance}} GiB'],
        [`rate(process_cpu_seconds_total[$__rate_interval]) ${OURS}`, '{{instance}} cores'],
      ),
    ],
  },
  {
    title: 'API servers',
    panels: [
      series('Requests', 'ops', 'By cluster and verb.', [
        `sum by (cluster, verb) (rate(kube_client_requests_total{${CLUSTER}}[$__rate_interval]))`,
        '{{cluster}} {{verb}}',
      ]),
      seldom(
        series(
          'Failures',
          'ops',
          'Answers of 400 and above, and requests without an answer. 404 and 409 are part of peace.',
          [
            `sum by (cluster, resource, code) (rate(kube_client_requests_total{${CLUSTER},code!~"[123].."}[$__rate_interval]))`,
            '{{cluster}} {{resource}} {{code}}',
          ],
        ),
      ),
      series('Time of requests', 's', '99 of 100.', [
        quantile(0.99, 'kube_client_request_duration_seconds', 'cluster, verb', `{${CLUSTER}}`),
        '{{cluster}} {{verb}}',
      ]),
      series('Objects in caches', 'short', 'By cluster and kind.', [
        `max by (cluster, resource) (kube_informer_objects{${CLUSTER}})`,
        '{{cluster}} {{resource}}',
      ]),
      seldom(
        series('Watches that ended', 'ops', 'closed: by the server, in time.', [
          `sum by (cluster, end) (rate(kube_informer_watches_total{${CLUSTER}}[$__rate_interval]))`,
          '{{cluster}} {{end}}',
        ]),
      ),
      series('Requests to virtual nodes', 'ops', 'To their kubelet ports.', [
        'sum by (route, code) (rate(spillway_kubelet_requests_total[$__rate_interval]))',
        '{{route}} {{code}}',
      ]),
    ],
  },
];

/** Grafana's own JSON, to be imported or provisioned as it is. */
export function dashboard(): string {
  return `${JSON.stringify(
    {
      uid: 'spillway',
      title: 'Spillway',
      description: 'Members, room, pods, moves, safety and lag of Spillway. Generated by hack/generate-manifests.ts.',
      tags: ['kubernetes', 'spillway'],
      schemaVersion: 39,
      editable: true,
      refresh: '30s',
      time: { from: 'now-3h', to: 'now' },
      timezone: 'browser',
      templating: { list: variables() },
      panels: placed(),
    },
    null,
    2,
  )}\n`;
}

function variables(): object[] {
  const member = 'label_values(spillway_member_reachable, member)';
  return [
    { name: 'datasource', label: 'Data source', type: 'datasource', query: 'prometheus' },
    {
      name: 'member',
      label: 'Member',
      type: 'query',
      datasource: DATASOURCE,
      definition: member,
      query: { query: member, refId: 'members' },
      refresh: 2,
      sort: 1,
      multi: true,
      includeAll: true,
      allValue: '.*',
      current: { text: 'All', value: '$__all' },
    },
  ];
}

const DATASOURCE = { type: 'prometheus', uid: '${datasource}' };
/** Of 24 columns. */
const SIZES = { timeseries: { w: 8, h: 8 }, stat: { w: 3, h: 4 } };

/** Panels one after the other, in lines of 24 columns below the heading of their row. */
function placed(): object[] {
  let id = 0;
  let y = 0;
  return ROWS.flatMap(({ title, panels }) => {
    const heading = {
      id: (id += 1),
      type: 'row',
      title,
      collapsed: false,
      gridPos: { x: 0, y, w: 24, h: 1 },
      panels: [],
    };
    y += 1;
    let x = 0;
    let line = 0;
    const those = panels.map((panel) => {
      const { w, h } = SIZES[panel.kind];
      if (x + w > 24 || (line !== 0 && h !== line)) {
        y += line;
        x = 0;
      }
      line = h;
      const at = { id: (id += 1), gridPos: { x, y, w, h } };
      x += w;
      return { ...at, ...drawn(panel) };
    });
    y += line;
    return [heading, ...those];
  });
}

function drawn({ title, about, kind, unit, queries, alarm }: Panel): object {
  const steps = [{ color: 'green', value: null }, ...(alarm === undefined ? [] : [{ color: 'red', value: alarm }])];
  return {
    type: kind,
    title,
    description: about,
    datasource: DATASOURCE,
    fieldConfig: { defaults: { unit, min: 0, thresholds: { mode: 'absolute', steps } }, overrides: [] },
    options:
      kind === 'stat'
        ? {
            colorMode: 'value',
            graphMode: 'none',
            reduceOptions: { calcs: ['lastNotNull'], fields: '', values: false },
          }
        : { legend: { displayMode: 'list', placement: 'bottom' }, tooltip: { mode: 'multi', sort: 'desc' } },
    targets: queries.map(([expr, legendFormat], index) => ({
      refId: String.fromCharCode(65 + index),
      datasource: DATASOURCE,
      expr,
      legendFormat: legendFormat === '' ? '__auto' : legendFormat,
    })),
  };
}
