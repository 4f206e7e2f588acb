import { Refusal } from '../fixtures/memory-api/refusal.ts';
import type { MemoryRequest } from '../fixtures/memory-api.ts';
import type { Change } from '../fixtures/memory-api/versioned-store.ts';
import type { MemoryWatch, WatchEvent } from '../fixtures/memory-api/watch.ts';
import type { Turn } from './event-loop.ts';
import type { Line } from './network.ts';
import { textOf } from './object-text.ts';
import type { SimCluster, SimObject } from './sim-cluster.ts';
import type { Call } from './sim-pool.ts';

/** What goes wrong within one watch. */
export type WatchFault =
  /** Nothing comes any more, and it does not end. */
  | 'silent'
  /** Each event comes twice, the second time after the next one. */
  | 'doubled'
  /** Neighbours change places. */
  | 'reordered'
  /** Everything comes late, by up to a minute. */
  | 'stale'
  /** An event is missing; the watch breaks soon after. */
  | 'lossy';

const BOOKMARK_MS = 60_000;

/** One watch of one client. */
export class WatchStream {
  readonly collection: string;
  readonly call: Call;
  fault: WatchFault | undefined;
  readonly #cluster: SimCluster;
  readonly #watch: MemoryWatch;
  readonly #line: Line;
  #waking: Turn | undefined;
  #repeat: string | undefined;
  /** Something was not sent: who goes on from here would never learn of it. */
  #lost = false;
  readonly #timers: Turn[] = [];

  static open(cluster: SimCluster, request: MemoryRequest, call: Call, line: Line): void {
    try {
      const stream = new WatchStream(cluster, request, call, line);
      cluster.watches.add(stream);
      stream.#begin(Number(request.query['timeoutSeconds'] ?? '1800'));
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      line.whole(error.code, JSON.stringify(error.status));
    }
  }

  private constructor(cluster: SimCluster, request: MemoryRequest, call: Call, line: Line) {
    this.#cluster = cluster;
    this.collection = request.path;
    this.#watch = cluster.api.watch(request);
    this.#line = line;
    this.call = call;
    call.onOver = () => this.#close();
  }

  /** Something changed in the collection. */
  wake(change: Change): void {
    if (this.#isDeserted() || this.#waking !== undefined || !this.#watch.tells(change)) return;
    this.#waking = this.#cluster.loop.later(this.fault === 'stale' ? 20_000 : 0, () => {
      this.#waking = undefined;
      this.#flush();
    });
  }

  reset(): void {
    if (this.#lost) {
      this.expire();
      return;
    }
    this.#close();
    this.#line.reset();
  }

  /** Tells the client that it has been away for too long. */
  expire(): void {
    if (!this.#lost) this.#tellExpired();
    this.#end();
  }

  #tellExpired(): void {
    const status = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', code: 410, reason: 'Expired' };
    this.#line.piece(text({ type: 'ERROR', object: { ...status, message: 'too old resource version' } }));
  }

  #begin(seconds: number): void {
    this.#line.start();
    const { lie, loop } = this.#cluster;
    const events = this.#watch.take();
    const shown =
      lie === undefined ? events : events.filter(({ type, object }) => type !== 'ADDED' || !lie(object as SimObject));
    if (shown.length > 0) this.#line.piece(shown.map(text).join(''));
    if (this.#watch.ended) {
      this.#end();
      return;
    }
    const again = (): void => {
      if (this.#isDeserted()) return;
      this.#prove();
      this.#timers.push(loop.later(BOOKMARK_MS, again));
    };
    this.#timers.push(
      loop.later(BOOKMARK_MS, again),
      loop.later(Math.max(0, seconds - 2) * 1000, () => this.#prove()),
      loop.later(seconds * 1000, () => this.#end()),
    );
  }

  /** A bookmark says that everything before it was sent. */
  #prove(): void {
    if (this.fault !== undefined) return;
    this.#flush();
    const bookmark = this.#watch.bookmark();
    if (bookmark !== undefined) this.#line.piece(text(bookmark));
  }

  #flush(): void {
    let lines = this.#watch.take().map(text);
    if (lines.length === 0 || this.fault === 'silent') return;
    if (this.fault === 'reordered') lines.reverse();
    if (this.fault === 'doubled') {
      const before = this.#repeat;
      this.#repeat = lines.at(-1);
      lines = [...lines, ...(before === undefined ? [] : [before])];
    }
    if (this.fault === 'lossy') {
      lines.pop();
      this.#lost = true;
      this.#timers.push(this.#cluster.loop.later(3_000, () => this.expire()));
    }
    if (lines.length > 0) this.#line.piece(lines.join(''));
    if (this.#watch.ended) this.#end();
  }

  #end(): void {
    if (this.#lost) this.#tellExpired();
    this.#close();
    this.#line.end();
  }

  /** Closes what nobody listens to any more. */
  #isDeserted(): boolean {
    const isDeserted = this.call.over || this.call.owner?.alive === false;
    if (isDeserted) this.#close();
    return isDeserted;
  }

  #close(): void {
    this.#cluster.watches.delete(this);
    for (const turn of this.#timers) turn.cancelled = true;
    if (this.#waking !== undefined) this.#waking.cancelled = true;
  }
}

function text({ type, object }: WatchEvent): string {
  return `{"type":"${type}","object":${textOf(object)}}\n`;
}
