/** A PNG of one pixel, as base64. */
export const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

/** Returns the images of a job: the PNG, at this position of its text. */
export function pngAt(at: number) {
  return [{ mediaType: 'image/png' as const, data: png, at }];
}

/** Messages of the APIs for SDKs. */
export const user = (content: unknown) => ({ role: 'user', content });
export const assistant = (content: unknown, more: object = {}) => ({ role: 'assistant', content, ...more });
export const system = (content: unknown) => ({ role: 'system', content });

/** A text part of the Chat Completions API and of the Messages API. */
export const textPart = (text: string) => ({ type: 'text', text });

/** Returns the job of a request of the model eliza that asks for no more than an answer to a text. */
export function plainJob(differences: object = {}) {
  return {
    operation: 'ask',
    isEffortNeeded: false,
    text: 'Hi',
    history: [],
    model: 'eliza',
    stream: false,
    ...differences,
  };
}
