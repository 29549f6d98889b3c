const classes: Readonly<Record<number, string>> = {
  400: 'BadRequestError',
  401: 'AuthenticationError',
  403: 'PermissionDeniedError',
  404: 'NotFoundError',
  413: 'APIError',
  429: 'RateLimitError',
};

/** What the SDK of OpenAI raises for a status. */
export function openAiClass(status: number): string {
  return classes[status] ?? 'InternalServerError';
}
