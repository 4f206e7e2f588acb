import { dirname, join } from 'node:path/posix';
import { importsOf, type ModuleImport } from './module-imports.ts';

/** Source text by path below the repository, like `src/kube/errors.ts`. */
export type Sources = ReadonlyMap<string, string>;

interface Edge extends ModuleImport {
  from: string;
  /** Path of the imported file, or undefined for a package. */
  to: string | undefined;
}

/** What all rooms may use: Kubernetes as it is, our kinds, and what every HTTPS port needs; each knows only those before it. */
const GROUND = ['kube', 'api', 'serving'];

/** Rooms that do things; they get each other only as small interfaces, wired together by `manager/`. */
const EFFECT_ROOMS = [
  'host',
  'members',
  'nodes',
  'pods',
  'dependents',
  'kubelet',
  'telemetry',
  'scheduler',
  'descheduler',
  'admission',
  'budgets',
  'services',
  'multi-cluster',
];

/** Where decisions are made that several rooms need: functions of plain JSON and the time. */
const PURE = [/^placement\//, /^overrides\//, /^capacity\//, /^pods\/(translate|decide|references)\b/];

/** The same for decisions that one effect room keeps to itself. */
const PURE_WITHIN = [
  /^pods\/(evidence|finished|host-status|hold-patch|lost-status|member-updates|status-patch|creation-intent|deletion-pace|passing-holds|undeleted)\.ts$/,
  /^nodes\/(node-changes|status-changes|render-node|desired-node|node-labels)\.ts$/,
  /^dependents\/(claim-decision|copy-decision|claim-readiness|readiness|data-guard|reclaim)\.ts$/,
  /^budgets\/(claims|covered-pods|floor|host-budget|budget-memory|mirrored-budget|budgets-finding)\.ts$/,
  /^services\/(service-copy|member-slices|isolated-slices|traffic-hints|host-service|services-finding)\.ts$/,
  /^multi-cluster\/(export-record|merged-service|export-conditions|derived-service|imported-slices|exchange-finding)\.ts$/,
  /^members\/(node-powers|retiring-node|undeleted-in-words)\.ts$/,
  /^scheduler\/kinds-to-follow\.ts$/,
  /^scheduler\/gangs\/(gang|gang-kin|gang-patches)\.ts$/,
  /^members\/leaving\/(leaving-words|remains)\.ts$/,
  // The strategies, and what is to become of released pods.
  /^descheduler\/(member-lost|out-of-service|taint-no-execute|drain|unhealthy-in-member|displaced|gang-timed-out)\.ts$/,
  /^descheduler\/(eviction-refusal|order|strategies|migration|migration-course|migration-status|rebalance-status|wanted-move|replaceable|purge-mode|release-step|release-rules|release-patches|heal-step|heal-choice)\.ts$/,
];

/** Who may know every room: the one that wires them together, and what people call. */
const COMPOSITION_ROOT = [/^manager\//, /^main\.ts$/, /^cli\//];

/** What runs in a browser. It knows types of the program alone, and no package but these. */
const PAGE = [/^cli\/ui\/page\//];
const PAGE_PACKAGES = /^preact(\/|$)/;

/** All that stands at the top of src. */
const TOP = new Set(['main.ts', 'config.ts', 'version.ts']);

/** Free for everyone but `kube`: constants about the program itself. */
const FREE = new Set(['version.ts']);

/** Who may evict pods: whoever else has a reason to move one goes through the mover, so that its rules hold for every move. */
const EVICTORS = new Set(['descheduler/mover.ts', 'descheduler/released-pods.ts', 'cli/drain.ts']);

/** Modules that reach outside the process; nothing pure may load one. */
const IO_MODULES =
  /^(node:)?(fs|net|http|https|http2|tls|dns|dgram|child_process|cluster|worker_threads|readline|timers|process)(\/|$)|^(undici|express|p-queue|pino|@kubernetes\/client-node)(\/|$)/;

/** What answers differently each time, so that it comes in as an argument where decisions are made. */
const CLOCKS_AND_CHANCE = /\b(Date\.now\(|performance\.now\(|Math\.random\(|new Date\(\)|randomUUID\()|kube\/clock\.ts/;

/** Every breach of the house's import rules (docs/design.md, section 2), one line each; empty when all is well. */
export function checkImports(sources: Sources): string[] {
  const edges = [...sources].flatMap(([path, text]) => edgesOf(path, text, sources));
  const paths = [...sources.keys()];
  return [
    ...edges.flatMap(checkEdge),
    ...edges.flatMap(checkEvictors),
    ...checkTop(paths),
    ...checkPurity(edges, paths),
    ...checkTime(sources),
    ...findCycles(edges.filter(({ typeOnly }) => !typeOnly)),
    ...findCycles(arrowsOf(edges)),
  ].toSorted();
}

/** Files that a rule holds pure and that are not there any more, one line each: a file that got another name would go unwatched. */
export function goneFromRules(paths: readonly string[]): string[] {
  const there = new Set(paths.map(inner));
  const named = PURE_WITHIN.flatMap(({ source }) => {
    // As they are all written: the files of one folder, each by its name.
    const [, folder = '', names = ''] = /^\^(.*\\\/)\(?([\w|-]+)\)?\\\.ts\$$/.exec(source) ?? [];
    return names.split('|').map((name) => `${folder.replaceAll('\\', '')}${name}.ts`);
  });
  return named.filter((path) => !there.has(path)).map((path) => `${path}: is held pure by a rule, and is not there`);
}

function edgesOf(from: string, text: string, sources: Sources): Edge[] {
  return importsOf(text).map((one) => {
    if (!one.specifier.startsWith('.')) return { ...one, from, to: undefined };
    const target = join(dirname(from), one.specifier);
    return { ...one, from, to: sources.has(target) ? target : target.replace(/\.js$/, '.ts') };
  });
}

/** Below src: `kube/errors.ts`. */
function inner(path: string): string {
  return path.replace(/^src\//, '');
}

/** The folder directly below src, or '' for a file at the top. */
function roomOf(path: string): string {
  const parts = inner(path).split('/');
  return parts.length > 1 ? (parts[0] ?? '') : '';
}

const matches = (patterns: readonly RegExp[], path: string): boolean => patterns.some((one) => one.test(inner(path)));

const isPure = (path: string): boolean => matches([...PURE, ...PURE_WITHIN], path);

function checkEdge(edge: Edge): string[] {
  const { from, to } = edge;
  if (matches(PAGE, from)) return checkPage(edge);
  if (to === undefined) return [];
  const breach = (rule: string): string[] => [`${from}:${edge.line}: imports ${to}: ${rule}`];
  if (!to.startsWith('src/')) return breach('the program imports nothing from outside src');
  const [source, target] = [roomOf(from), roomOf(to)];
  if (matches(PAGE, to)) return breach('only browsers load the page');
  if (target === 'cli' && source !== 'cli') return breach('nothing knows the verbs of kubectl spillway');
  if (source === 'cli' && target === 'manager') return breach('verbs run without the manager');
  if (matches(COMPOSITION_ROOT, from) || (source === target && source !== '')) return [];
  const floor = GROUND.indexOf(source);
  if (source === 'kube') return breach('kube knows nothing of Spillway');
  if (FREE.has(inner(to))) return [];
  if (GROUND.includes(target)) return floor < 0 || GROUND.indexOf(target) < floor ? [] : breach(onlyBelow(floor));
  if (floor >= 0) return breach(onlyBelow(floor));
  if (matches(COMPOSITION_ROOT, to) || target === '') return breach('only manager/ and main.ts may know that file');
  if (matches(PURE, to)) return [];
  if (source === '') return breach('only manager/, main.ts and cli/ may import rooms');
  if (EFFECT_ROOMS.includes(target)) return breach('effect rooms get each other as interfaces, from manager/');
  return breach(`${target} is a room that the import rules do not know`);
}

function checkEvictors({ from, to, names, typeOnly, line }: Edge): string[] {
  const takesIt = !typeOnly && to === 'src/kube/verbs.ts' && names.some((name) => name === 'evict' || name === '*');
  return takesIt && !EVICTORS.has(inner(from))
    ? [`${from}:${line}: imports evict: only ${[...EVICTORS].join(', ')} may; all others ask the mover`]
    : [];
}

function checkPage({ from, to, specifier, typeOnly, line }: Edge): string[] {
  const isAllowed =
    to === undefined ? PAGE_PACKAGES.test(specifier) : matches(PAGE, to) || (typeOnly && to.startsWith('src/cli/'));
  return isAllowed
    ? []
    : [`${from}:${line}: imports ${to ?? specifier}: a browser has only the page itself, and preact`];
}

const onlyBelow = (floor: number): string =>
  `${GROUND[floor] ?? ''} may import only ${GROUND.slice(0, floor).join(', ')}`;

function checkTop(paths: readonly string[]): string[] {
  return paths
    .filter((path) => roomOf(path) === '' && !TOP.has(inner(path)))
    .map((path) => `${path}: stands at the top of src, where only ${[...TOP].join(', ')} belong`);
}

interface Arrow {
  from: string;
  to: string;
}

/** One for each import of a file of another room, be it of types alone; a file at the top is a room, too. */
export function arrowsBetweenRooms(sources: Sources): Arrow[] {
  return arrowsOf([...sources].flatMap(([path, text]) => edgesOf(path, text, sources)));
}

function arrowsOf(edges: readonly Edge[]): Arrow[] {
  const room = (path: string): string => (roomOf(path) === '' ? path : `src/${roomOf(path)}`);
  return edges.flatMap(({ from, to }) =>
    to === undefined || room(from) === room(to) ? [] : [{ from: room(from), to: room(to) }],
  );
}

/** A pure file loads, however indirectly, only files that are pure in fact: kube, api, its own room, pure rooms. */
function checkPurity(edges: readonly Edge[], paths: readonly string[]): string[] {
  const loads = new Map<string, Edge[]>();
  for (const edge of edges) {
    if (!edge.typeOnly) loads.set(edge.from, [...(loads.get(edge.from) ?? []), edge]);
  }
  const breaches: string[] = [];
  for (const start of paths.filter((path) => isPure(path))) {
    const seen = new Set([start]);
    const queue: { path: string; via: string[] }[] = [{ path: start, via: [start] }];
    for (const { path, via } of queue) {
      for (const edge of loads.get(path) ?? []) {
        const route = [...via, edge.to ?? edge.specifier].join(' -> ');
        if (edge.to === undefined) {
          if (IO_MODULES.test(edge.specifier)) breaches.push(`${start}: is pure, but loads I/O: ${route}`);
        } else if (!seen.has(edge.to)) {
          seen.add(edge.to);
          queue.push({ path: edge.to, via: [...via, edge.to] });
        }
      }
    }
  }
  return breaches;
}

/** The time and chance come to a pure file as arguments. */
function checkTime(sources: Sources): string[] {
  return [...sources].flatMap(([path, text]) => {
    const [read] = (isPure(path) ? CLOCKS_AND_CHANCE.exec(text) : null) ?? [];
    return read === undefined ? [] : [`${path}: is pure, but reads ${read}`];
  });
}

/** Circles among files, or among rooms; each is told once, from its first name in the alphabet. */
function findCycles(edges: readonly { from: string; to: string | undefined }[]): string[] {
  const loads = new Map<string, Set<string>>();
  for (const { from, to } of edges) {
    if (to !== undefined) loads.set(from, (loads.get(from) ?? new Set()).add(to));
  }
  const done = new Set<string>();
  const cycles = new Set<string>();
  const walk = (path: string, trail: string[]): void => {
    const at = trail.indexOf(path);
    if (at >= 0) {
      const circle = trail.slice(at);
      const first = circle.indexOf(circle.toSorted()[0] ?? '');
      const turned = [...circle.slice(first), ...circle.slice(0, first)];
      cycles.add(`${turned[0]}: import cycle: ${[...turned, turned[0]].join(' -> ')}`);
      return;
    }
    if (done.has(path)) return;
    for (const next of loads.get(path) ?? []) walk(next, [...trail, path]);
    done.add(path);
  };
  for (const path of loads.keys()) walk(path, []);
  return [...cycles];
}
