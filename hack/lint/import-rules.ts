import { dirname, join } from 'node:path/posix';
import { importsOf, type ModuleImport } from './module-imports.ts';

/** Source text by path below the repository, like `src/kube/errors.ts`. */
export type Sources = ReadonlyMap<string, string>;

interface Edge extends ModuleImport {
  from: string;
  /** Path of the imported file, or undefined for a package. */
  to: string | undefined;
}

/** Rooms that do things; they get each other only as small interfaces, wired together by the composition root. */
const EFFECT_ROOMS = [
  'members',
  'nodes',
  'pods',
  'dependents',
  'member-events',
  'kubelet',
  'usage',
  'telemetry',
  'scheduler',
  'descheduler',
  'admission',
  'gangs',
  'outages',
  'budgets',
];

/** Where decisions are made: functions of plain JSON and the time. */
const PURE = [
  /^placement\//,
  /^overrides\//,
  /^capacity\//,
  /^pods\/(translate|decide)\b/,
  /^dependents\/references\b/,
  /^budgets\/(claims|covered-pods|floor|host-budget|budget-memory)\b/,
];

/** Who may know every room: the files at the top of src, which wire the rooms together, and the commands. */
const COMPOSITION_ROOT = [/^(?!config\.ts$|version\.ts$)[a-z-]+\.ts$/, /^cli\//];

/** At the top of src and free for everyone: constants about the program itself. */
const FREE = new Set(['version.ts']);

/** Modules that reach outside the process; nothing pure may load one. */
const IO_MODULES =
  /^(node:)?(fs|net|http|https|http2|tls|dns|dgram|child_process|cluster|worker_threads|readline|timers|process)(\/|$)|^(undici|express|p-queue|pino|@kubernetes\/client-node)(\/|$)/;

/** Every breach of the house's import rules (docs/design.md, section 2), one line each; empty when all is well. */
export function checkImports(sources: Sources): string[] {
  const edges = [...sources].flatMap(([path, text]) => edgesOf(path, text, sources));
  return [...edges.flatMap(checkEdge), ...checkPurity(edges, [...sources.keys()]), ...findCycles(edges)].toSorted();
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

function checkEdge(edge: Edge): string[] {
  const { from, to } = edge;
  if (to === undefined) return [];
  const breach = (rule: string): string[] => [`${from}:${edge.line}: imports ${to}: ${rule}`];
  if (!to.startsWith('src/')) return breach('the program imports nothing from outside src');
  const [source, target] = [roomOf(from), roomOf(to)];
  if (matches(COMPOSITION_ROOT, from)) return [];
  if (source === 'kube') return target === 'kube' ? [] : breach('kube knows nothing of Spillway');
  if (source === target && source !== '') return [];
  if (FREE.has(inner(to))) return [];
  if (source === 'api') return target === 'kube' ? [] : breach('api may import only kube');
  if (target === 'kube' || target === 'api') return [];
  if (target === '' || target === 'cli') {
    return source === '' && target === '' ? [] : breach('only the composition root may know that file');
  }
  if (matches(PURE, to)) return [];
  if (source === '') return breach('only the composition root (top of src, cli) may import rooms');
  if (EFFECT_ROOMS.includes(target))
    return breach('effect rooms get each other as interfaces, from the composition root');
  return breach(`${target} is a room that the import rules do not know`);
}

/** A pure file loads, however indirectly, only files that are pure in fact: kube, api, its own room, pure rooms. */
function checkPurity(edges: readonly Edge[], paths: readonly string[]): string[] {
  const loads = new Map<string, Edge[]>();
  for (const edge of edges) {
    if (!edge.typeOnly) loads.set(edge.from, [...(loads.get(edge.from) ?? []), edge]);
  }
  const breaches: string[] = [];
  for (const start of paths.filter((path) => matches(PURE, path))) {
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

/** Circles of files that load each other; each is told once, from its first file in the alphabet. */
function findCycles(edges: readonly Edge[]): string[] {
  const loads = new Map<string, string[]>();
  for (const { from, to, typeOnly } of edges) {
    if (to !== undefined && !typeOnly) loads.set(from, [...(loads.get(from) ?? []), to]);
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
