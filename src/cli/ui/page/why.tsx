import { useEffect, useState } from 'preact/hooks';
import type { Refusal, WhyAnswer } from '../view.ts';
import type { StepState } from '../../why/explanation.ts';
import { ask, AskError } from './ask.ts';
import { Sheet } from './sheet.tsx';
import { placeName } from './words.ts';

/** How a pod got where it is, step by step, as `kubectl spillway why` tells it. */
export function Why({ pod }: { pod: string }) {
  const [answer, setAnswer] = useState<WhyAnswer | Refusal | undefined>();
  const [times, setTimes] = useState(1);
  useEffect(() => {
    let isOver = false;
    const [namespace = '', ...rest] = pod.split('/');
    const look = async (): Promise<void> => {
      try {
        const found = await ask<WhyAnswer>('/api/why', { namespace, name: rest.join('/') });
        if (!isOver) setAnswer(found);
      } catch (error) {
        if (!isOver)
          setAnswer(error instanceof AskError ? error.refusal : { error: String(error), reason: '', fix: '' });
      }
    };
    void look();
    return () => {
      isOver = true;
    };
  }, [pod, times]);
  return (
    <Sheet title={`Why ${pod}`}>
      <div aria-live="polite">
        {answer === undefined ? (
          <p>Asking …</p>
        ) : 'error' in answer ? (
          <Refused refusal={answer} />
        ) : (
          <Told {...answer} />
        )}
      </div>
      <p>
        <button type="button" onClick={() => setTimes(times + 1)}>
          Ask again
        </button>
      </p>
    </Sheet>
  );
}

export function Refused({ refusal: { error, reason, fix } }: { refusal: Refusal }) {
  return (
    <div class="notice alarm">
      <p>{error}</p>
      {reason !== '' && <p>{reason}</p>}
      {fix !== '' && <p>What helps: {fix}</p>}
    </div>
  );
}

const STATES: Readonly<Record<StepState, string>> = {
  ok: 'done',
  waits: 'waits',
  failed: 'stuck',
  next: 'next',
  unknown: 'not known',
};

function Told({ explanation, missing }: WhyAnswer) {
  const { phase, answer, steps, places, help, pages } = explanation;
  return (
    <>
      <p class="answer">
        <span class="state">{phase}</span> {answer}
      </p>
      <ol class="steps">
        {steps.map(({ by, state, says }) => (
          <li key={by} class={state}>
            <span class="state">{STATES[state]}</span>
            <h3>{by}</h3>
            <p>{says}</p>
          </li>
        ))}
      </ol>
      {places.length > 0 && (
        <>
          <h3>Cluster by cluster</h3>
          <ul class="lines">
            {places.map(({ cluster, says }) => (
              <li key={cluster}>
                <strong>{placeName(cluster)}</strong> {says}
              </li>
            ))}
          </ul>
        </>
      )}
      {help.length > 0 && (
        <>
          <h3>What helps</h3>
          <ul class="lines">
            {help.map((one) => (
              <li key={one}>{one}</li>
            ))}
          </ul>
        </>
      )}
      {pages.length > 0 && <p class="quiet">To read: {pages.map((page) => `docs/${page}`).join(', ')}</p>}
      {missing.length > 0 && <p class="quiet">More could be said if you were allowed to {missing.join(', ')}.</p>}
    </>
  );
}
