import { isNotFound } from './errors.ts';

/** What the API server answers; undefined where it says that there is no such object. */
export async function ifThere<T>(request: Promise<T>): Promise<T | undefined> {
  try {
    return await request;
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}
