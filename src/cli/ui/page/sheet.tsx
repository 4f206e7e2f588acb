import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { TO_PAGE } from './route.ts';

/** Stands above the page until it is closed: by Escape, its button, or going back. The browser keeps the focus inside. */
export function Sheet({ title, children }: { title: string; children: ComponentChildren }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const { current } = dialog;
    if (current?.open === false) current.showModal();
  }, []);
  const close = (): void => {
    if (location.hash !== TO_PAGE && location.hash !== '') location.hash = TO_PAGE;
  };
  return (
    <dialog ref={dialog} class="sheet" aria-labelledby="sheet-title" onClose={close}>
      <header>
        <h2 id="sheet-title">{title}</h2>
        <button type="button" class="close" onClick={() => dialog.current?.close()}>
          Close
        </button>
      </header>
      {children}
    </dialog>
  );
}
