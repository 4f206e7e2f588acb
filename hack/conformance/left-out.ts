import type { LeftOut } from './comparison.ts';

/** The conformance specs of sig-node. */
export const FOCUS = String.raw`\[sig-node\].*\[Conformance\]`;

/** Nothing is left out because a virtual node fails it: only what this machine's member cannot do itself. */
export const LEFT_OUT: readonly LeftOut[] = [
  {
    pattern: String.raw`ImageVolume should succeed with pod and pull policy of Always`,
    reason: 'it pulls an image from a registry, and nothing is pulled here; images as volumes also need containerd 2.1',
  },
];
