import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { cleanText } from './clean-text.ts';
import { atMost } from './lru-limit.ts';

/** What an Event is about. `fieldPath` names a part of it, such as `spec.containers{web}`. */
export interface EventSubject {
  apiVersion: string;
  kind: string;
  /** Absent for cluster-scoped objects. */
  namespace?: string | undefined;
  name: string;
  uid?: string | undefined;
  fieldPath?: string | undefined;
}

export type EventType = 'Normal' | 'Warning';

/** An occurrence after correlation: which Event object it counts in, and what that shall say. */
export interface CorrelatedEvent {
  /** The Event's name, `<object>.<hex>`: the same for the same thing, in this process and the next. */
  name: string;
  subject: EventSubject;
  type: EventType;
  reason: string;
  message: string;
}

/** As in client-go: 25 Events at once about one object, then one every 5 minutes. */
const BURST = 25;
const REFILL_MS = 300_000;
/** As in client-go: from the 10th different message of one reason within 10 minutes they share one Event. */
const SIMILAR = 10;
const SIMILAR_MS = 600_000;
const REMEMBERED = 4_096;

const MAX_MESSAGE_BYTES = 1_024;
const MAX_REASON_BYTES = 128;
const MAX_NAME = 253;

/** Decides, from what was recorded before, which occurrences are worth an API call and which Event they belong to. */
export class EventCorrelator {
  readonly #component: string;
  readonly #monotonic: () => number;
  readonly #tokens = new LRUCache<string, { left: number; at: number }>(atMost(REMEMBERED));
  readonly #similar = new LRUCache<string, { messages: Set<string>; at: number }>(atMost(REMEMBERED));

  constructor(component: string, monotonic: () => number) {
    this.#component = component;
    this.#monotonic = monotonic;
  }

  /** The Event this occurrence counts in, or undefined when its object has had too many of late. */
  correlate(subject: EventSubject, type: EventType, reason: string, message: string): CorrelatedEvent | undefined {
    const { apiVersion, kind, namespace = '', name, uid = '', fieldPath = '' } = subject;
    const about = [apiVersion, kind, namespace, name, uid].join('\0');
    if (!this.#takeToken(about)) return undefined;
    const event = {
      subject,
      type,
      reason: cleanText(reason, MAX_REASON_BYTES),
      message: cleanText(message, MAX_MESSAGE_BYTES),
    };
    const group = [this.#component, about, fieldPath, type, event.reason].join('\0');
    if (this.#isOneOfMany(group, event.message)) {
      const combined = cleanText(`(combined from similar events): ${event.message}`, MAX_MESSAGE_BYTES);
      return { ...event, message: combined, name: eventName(name, group) };
    }
    return { ...event, name: eventName(name, `${group}\0\0${event.message}`) };
  }

  #takeToken(about: string): boolean {
    const now = this.#monotonic();
    const bucket = this.#tokens.get(about) ?? { left: BURST, at: now };
    const left = Math.min(BURST, bucket.left + Math.max(0, now - bucket.at) / REFILL_MS);
    const allowed = left >= 1;
    this.#tokens.set(about, { left: allowed ? left - 1 : left, at: now });
    return allowed;
  }

  #isOneOfMany(group: string, message: string): boolean {
    const now = this.#monotonic();
    let seen = this.#similar.get(group);
    if (seen === undefined || now - seen.at > SIMILAR_MS) {
      seen = { messages: new Set(), at: now };
      this.#similar.set(group, seen);
    }
    seen.at = now;
    seen.messages.add(message);
    if (seen.messages.size < SIMILAR) return false;
    const [oldest] = seen.messages;
    if (oldest !== undefined) seen.messages.delete(oldest);
    return true;
  }
}

/** A name for the Event that is known by `identity`: the same for the same identity, in this process and the next. */
export function eventName(objectName: string, identity: string): string {
  const hex = createHash('sha256').update(identity).digest('hex').slice(0, 16);
  // A cut must not leave a dot or dash before our dot: the name has to stay a DNS subdomain.
  const stem = objectName.slice(0, MAX_NAME - hex.length - 1).replace(/[^a-zA-Z0-9]+$/, '');
  return `${stem}.${hex}`;
}
