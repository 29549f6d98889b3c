const classes: Readonly<Record<number, string>> = {
  400: 'BadRequestError',
  401: 'AuthenticationError',
  403: 'PermissionDeniedError',
  404: 'NotFoundError',
  413: 'APIError',
  429: 'RateLimitError',
};

/** Returns the error class that OpenAI's SDK raises for a status. */
export function openAiClass(status: number): string {
  return classes[status] ?? 'InternalServerError';
}
