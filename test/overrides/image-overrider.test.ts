import { describe, expect, it } from 'vitest';
import type { Overrider } from '../../src/api/overriders.ts';
import { overriddenImage, overrideImages } from '../../src/overrides/image-overrider.ts';
import { OverrideError } from '../../src/overrides/override-error.ts';
import type { JsonRecord } from '../../src/kube/json-fields.ts';

type ImageOverrider = Overrider<'imageOverrider'>;

const D1 = `sha256:${'d1'.repeat(32)}`;
const D2 = `sha256:${'d2'.repeat(32)}`;
const IMAGE = 'registry.example/imagename:v1.0.0';

const change = (
  image: string,
  component: ImageOverrider['component'],
  operator: ImageOverrider['operator'],
  value?: string,
) => overriddenImage(image, { component, operator, ...(value === undefined ? {} : { value }) }, 'x');

describe('overriddenImage', () => {
  it.each<[string, ImageOverrider['component'], ImageOverrider['operator'], string | undefined, string]>([
    // What Karmada does.
    ['perl:5.34.0', 'Registry', 'add', 'registry.k8s.io', 'registry.k8s.io/perl:5.34.0'],
    [IMAGE, 'Registry', 'add', '.test', 'registry.example.test/imagename:v1.0.0'],
    [IMAGE, 'Registry', 'replace', 'registry.us', 'registry.us/imagename:v1.0.0'],
    [IMAGE, 'Registry', 'remove', 'ignored', 'imagename:v1.0.0'],
    [IMAGE, 'Repository', 'add', '/nginx', 'registry.example/imagename/nginx:v1.0.0'],
    [IMAGE, 'Repository', 'add', '-slim', 'registry.example/imagename-slim:v1.0.0'],
    [IMAGE, 'Repository', 'replace', 'nginx', 'registry.example/nginx:v1.0.0'],
    ['registry.k8s.io/nginx-slim:0.8', 'Repository', 'replace', 'nginx', 'registry.k8s.io/nginx:0.8'],
    [IMAGE, 'Tag', 'add', '-eu', 'registry.example/imagename:v1.0.0-eu'],
    [IMAGE, 'Tag', 'add', D1, IMAGE],
    [IMAGE, 'Tag', 'replace', D1, `registry.example/imagename@${D1}`],
    [IMAGE, 'Tag', 'replace', 'v2', 'registry.example/imagename:v2'],
    [IMAGE, 'Tag', 'remove', 'ignored', 'registry.example/imagename'],
    [`nginx@${D1}`, 'Tag', 'replace', 'v2', 'nginx:v2'],
    [`nginx@${D1}`, 'Tag', 'replace', D2, `nginx@${D2}`],
    [`nginx@${D1}`, 'Tag', 'remove', undefined, 'nginx'],
    ['nginx', 'Tag', 'add', 'v2', 'nginx:v2'],
    // Karmada's documentation writes digests with the sign before them.
    ['nginx', 'Tag', 'replace', `@${D1}`, `nginx@${D1}`],
    // Where an image has both, what it is stays what it is, and a new tag is not held to the old digest.
    [`nginx:v1@${D1}`, 'Registry', 'replace', 'eu.example:5000', `eu.example:5000/nginx:v1@${D1}`],
    [`nginx:v1@${D1}`, 'Repository', 'replace', 'other', `other:v1@${D1}`],
    [`nginx:v1@${D1}`, 'Tag', 'replace', 'v2', 'nginx:v2'],
    [`nginx:v1@${D1}`, 'Tag', 'replace', D2, `nginx@${D2}`],
    [`nginx:v1@${D1}`, 'Tag', 'remove', undefined, 'nginx'],
    // Mirrors have their own paths.
    [
      'library/nginx:1',
      'Registry',
      'replace',
      'harbor.example/docker-hub',
      'harbor.example/docker-hub/library/nginx:1',
    ],
    ['registry.example:5000/a/b:1', 'Registry', 'replace', 'mirror', 'mirror/a/b:1'],
    ['localhost:5000/a', 'Registry', 'remove', undefined, 'a'],
  ])('%s, %s %s %s -> %s', (image, component, operator, value, expected) => {
    expect(change(image, component, operator, value)).toBe(expected);
  });

  it.each<[string, ImageOverrider['component'], ImageOverrider['operator'], string | undefined, string]>([
    // Karmada makes registry.example/:v1.0.0 of it, which no kubelet can pull.
    [IMAGE, 'Repository', 'remove', undefined, 'would not be an image reference'],
    [IMAGE, 'Repository', 'replace', 'Upper', 'would not be an image reference'],
    [IMAGE, 'Registry', 'replace', 'https://registry.us', 'would not be an image reference'],
    [IMAGE, 'Registry', 'add', ':port', 'would not be an image reference'],
    [IMAGE, 'Tag', 'replace', 'not a tag', 'neither a tag nor a digest'],
    ['Not An Image', 'Tag', 'replace', 'v1', 'it is not an image reference'],
    ['', 'Registry', 'replace', 'a.example', 'it is not an image reference'],
  ])('refuses %j, %s %s %s', (image, component, operator, value, problem) => {
    expect(() => change(image, component, operator, value)).toThrow(problem);
  });
});

describe('overrideImages', () => {
  const pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'p' },
    spec: {
      initContainers: [{ name: 'init', image: 'busybox' }],
      containers: [{ name: 'app', image: 'nginx:1' }, { name: 'side', image: 'quay.io/side:2' }, { name: 'none' }],
      ephemeralContainers: [{ name: 'debug', image: 'alpine' }],
    },
  };
  const eu = (more: Partial<ImageOverrider> = {}): ImageOverrider => ({
    component: 'Registry',
    operator: 'replace',
    value: 'eu.example',
    scope: 'Containers',
    ...more,
  });
  const images = (object: JsonRecord) => {
    const spec = object['spec'] as Record<string, { name: string; image?: string }[]>;
    return Object.fromEntries(Object.values(spec).flatMap((list) => list.map(({ name, image }) => [name, image])));
  };

  it('changes all containers but not init containers, as Karmada does', () => {
    expect(images(overrideImages(pod, eu()))).toEqual({
      init: 'busybox',
      app: 'eu.example/nginx:1',
      side: 'eu.example/side:2',
      none: undefined,
      debug: 'alpine',
    });
  });

  it('changes the others too when asked to', () => {
    expect(images(overrideImages(pod, eu({ scope: 'AllContainers' })))).toMatchObject({
      init: 'eu.example/busybox',
      app: 'eu.example/nginx:1',
      debug: 'eu.example/alpine',
    });
  });

  it.each(['/spec/containers/1/image', '/spec/template/spec/containers/1/image'])('changes the one at %s', (path) => {
    const after = overrideImages(pod, eu({ predicate: { path } }));
    expect(images(after)).toEqual({ ...images(pod), side: 'eu.example/side:2' });
  });

  it('changes an image in an object of any kind at a path', () => {
    const config = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'c' }, data: { 'run/image': 'nginx' } };
    expect(overrideImages(config, eu({ predicate: { path: '/data/run~1image' } }))).toEqual({
      ...config,
      data: { 'run/image': 'eu.example/nginx' },
    });
    expect(overrideImages(config, eu())).toBe(config);
  });

  it('shares what stays, and is the same object when nothing changes', () => {
    const after = overrideImages(pod, eu());
    expect(after['metadata']).toBe(pod.metadata);
    expect((after['spec'] as typeof pod.spec).initContainers).toBe(pod.spec.initContainers);
    expect(overrideImages(after, eu())).toBe(after);
  });

  it.each([
    [{ predicate: { path: '/spec/containers/7/image' } }, 'there is no text at that path'],
    [{ predicate: { path: '/spec/containers' } }, 'there is no text at that path'],
    [{ predicate: { path: '/spec/__proto__/image' } }, 'there is no text at that path'],
    [{ predicate: { path: '/spec/jobTemplate/spec/template/spec/containers/1' } }, 'there is no text at that path'],
    [{ predicate: { path: '/metadata/name' } }, 'policies may not change what an object is'],
  ])('refuses %j', (more, problem) => {
    expect(() => overrideImages(pod, eu(more))).toThrow(problem);
  });

  it('names the container whose image it cannot read', () => {
    const broken = { ...pod, spec: { containers: [{ name: 'app', image: 'A B' }] } };
    expect(() => overrideImages(broken, eu())).toThrow(OverrideError);
    try {
      overrideImages(broken, eu());
    } catch (error) {
      expect((error as OverrideError).path).toBe('the image of container "app"');
    }
  });
});
