import { useState } from 'preact/hooks';
import type { PageState, Refusal } from '../view.ts';
import { toPod } from './route.ts';
import { clock, counted } from './words.ts';

export function Header({ state, isLive }: { state: PageState; isLive: boolean }) {
  const { context, namespace, managers, at } = state;
  return (
    <header class="top">
      <img class="mark" src="/icon.svg" alt="" width="36" height="36" />
      <div class="title">
        <h1>Spillway</h1>
        <p>
          {context === '' ? 'this cluster' : context}
          {namespace !== '' && ` · namespace ${namespace}`}
          {managers !== null && ` · ${managers.length === 0 ? 'no manager runs' : counted(managers.length, 'manager')}`}
        </p>
      </div>
      <AskWhy namespace={namespace} />
      <p class={isLive ? 'live' : 'live stale'}>
        <span class="dot" aria-hidden="true" />
        <span>
          {isLive ? 'live' : 'stale'} · <time dateTime={at}>{clock(at)}</time> · read-only
        </span>
      </p>
    </header>
  );
}

function AskWhy({ namespace }: { namespace: string }) {
  const [text, setText] = useState('');
  const asked = text.trim().replace(/^pod\//, '');
  return (
    <form
      class="ask"
      aria-label="why"
      onSubmit={(event) => {
        event.preventDefault();
        if (asked !== '') location.hash = toPod(asked.includes('/') ? asked : `${namespace || 'default'}/${asked}`);
      }}
    >
      <label htmlFor="ask-why">Why is pod</label>
      <input
        id="ask-why"
        value={text}
        placeholder="namespace/name"
        spellcheck={false}
        autocomplete="off"
        onInput={(event) => setText(event.currentTarget.value)}
      />
      <button type="submit">there?</button>
    </form>
  );
}

export function Notices({ state, refusal }: { state: PageState; refusal: Refusal | undefined }) {
  const { missing, trouble } = state;
  const says =
    refusal === undefined ? trouble : [refusal.error, refusal.reason, refusal.fix].filter(Boolean).join(': ');
  return (
    <>
      <div role="alert">{says !== '' && <p class="notice alarm">What you see is older: {says}</p>}</div>
      {missing.length > 0 && (
        <p class="notice">
          You may not {missing.join(', ')} with this kubeconfig: what depends on that is shown as “not known to you”.
        </p>
      )}
    </>
  );
}
