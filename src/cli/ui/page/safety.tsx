import { useState } from 'preact/hooks';
import type { PageState, SafetyView } from '../view.ts';
import { toPod } from './route.ts';

/** What the guards hold, each as a figure; those that hold something open. */
export function Safety({ state: { safety } }: { state: PageState }) {
  const [open, setOpen] = useState('');
  const shown = safety.find(({ id, items }) => id === open && items.length > 0);
  return (
    <section aria-labelledby="safety-title">
      <h2 id="safety-title">Safety</h2>
      <ul class="tiles">
        {safety.map((one) => (
          <li key={one.id}>
            <Tile guard={one} isOpen={one === shown} toggle={() => setOpen(one.id === open ? '' : one.id)} />
          </li>
        ))}
      </ul>
      {shown !== undefined && <Items guard={shown} />}
    </section>
  );
}

function Tile({ guard, isOpen, toggle }: { guard: SafetyView; isOpen: boolean; toggle: () => void }) {
  const { id, title, meaning, count, tone, items } = guard;
  const inner = (
    <>
      <span class="count">{count ?? '?'}</span>
      <span class="what">{title}</span>
      {count === null && <span class="unknown">not known to you</span>}
    </>
  );
  if (items.length === 0) {
    return (
      <div class={`tile ${tone}`} title={meaning}>
        {inner}
      </div>
    );
  }
  return (
    <button
      type="button"
      class={`tile ${tone}`}
      title={meaning}
      aria-expanded={isOpen}
      aria-controls={isOpen ? `guard-${id}` : undefined}
      onClick={toggle}
    >
      {inner}
    </button>
  );
}

function Items({ guard: { id, title, meaning, items, unnamed } }: { guard: SafetyView }) {
  return (
    <div class="panel" id={`guard-${id}`}>
      <h3>{title}</h3>
      <p class="quiet">{meaning}</p>
      <ul class="lines">
        {items.map(({ what, says, pod }) => (
          <li key={what}>
            <strong>{what}</strong> {says}
            {pod !== undefined && (
              <>
                {' '}
                <a href={toPod(pod)} aria-label={`why ${pod}`}>
                  why {pod}?
                </a>
              </>
            )}
          </li>
        ))}
      </ul>
      {unnamed > 0 && <p class="quiet">and {unnamed} more</p>}
    </div>
  );
}
