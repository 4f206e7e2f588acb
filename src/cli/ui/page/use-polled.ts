import { useEffect, useState } from 'preact/hooks';
import type { Refusal } from '../view.ts';
import { ask, AskError } from './ask.ts';

/** Between two questions, in ms. Nobody asks while the page is hidden. */
const PERIOD_MS = 2_000;

export interface Polled<T> {
  found: T | undefined;
  /** Why the last question had no answer; `found` is as it was before. */
  refusal: Refusal | undefined;
}

/** A document of the server, asked for again and again. `key`: what a workload is called; '' where there is one document only. */
export function usePolled<T>(path: string, key = ''): Polled<T> {
  const [polled, setPolled] = useState<Polled<T> & { key: string }>({ found: undefined, refusal: undefined, key });
  useEffect(() => {
    let isOver = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let isAsking = false;
    const look = async (): Promise<void> => {
      if (isOver || isAsking || document.hidden) return;
      isAsking = true;
      clearTimeout(timer);
      try {
        const found = await ask<T>(path, key === '' ? {} : { key });
        if (!isOver) setPolled({ found, refusal: undefined, key });
      } catch (error) {
        const refusal = error instanceof AskError ? error.refusal : { error: String(error), reason: '', fix: '' };
        if (!isOver) setPolled((before) => ({ found: before.key === key ? before.found : undefined, refusal, key }));
      }
      isAsking = false;
      if (!isOver) timer = setTimeout(() => void look(), PERIOD_MS);
    };
    const shown = (): void => void look();
    document.addEventListener('visibilitychange', shown);
    void look();
    return () => {
      isOver = true;
      clearTimeout(timer);
      document.removeEventListener('visibilitychange', shown);
    };
  }, [path, key]);
  return polled.key === key ? polled : { found: undefined, refusal: undefined };
}
