/** Stands in for `@opentelemetry/api`, which prom-client loads for exemplars. The service has none. */
export {};
