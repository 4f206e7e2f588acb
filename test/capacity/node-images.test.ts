import { expect, it } from 'vitest';
import type { Node } from '../../src/kube/core-v1.ts';
import { NodeImages } from '../../src/capacity/node-images.ts';

const node = (name: string, ...names: string[]): Node => ({
  metadata: { name },
  status: { images: [{ names }] },
});

it('tells how much of the images of a pod the nodes have', () => {
  const images = new NodeImages();
  const { added, updated, deleted } = images.nodeHandler;
  expect(images.share(['app'])).toBeUndefined();
  const digest = `sha256:${'a'.repeat(64)}`;
  added(node('a', 'docker.io/library/nginx:latest', `registry.example/app@${digest}`, 'registry.example/app:v1'));
  added(node('b', 'docker.io/library/nginx:latest', 'docker.io/library/nginx:latest'));
  expect(images.share(['nginx'])).toBe(100);
  expect(images.share(['nginx:1.27'])).toBe(0);
  expect(images.share(['registry.example/app:v1'])).toBe(50);
  expect(images.share([`registry.example/app:v9@${digest}`])).toBe(50);
  expect(images.share(['nginx', 'registry.example/app:v1'])).toBe(75);
  expect(images.share([])).toBeUndefined();
  updated(node('b', 'registry.example/app:v1'));
  expect(images.share(['registry.example/app:v1'])).toBe(100);
  expect(images.share(['docker.io/library/nginx'])).toBe(50);
  deleted(node('a'));
  expect(images.share(['docker.io/library/nginx'])).toBe(0);
});
