-- Everything that the catalog knows of the schema that is first in the search path, as one JSON object. Entries of each kind
-- are named and sorted; the schema's own name is left out. Used by the tests, and to make their file of expected facts.
WITH here AS (
    SELECT oid, nspname || '.' AS prefix FROM pg_namespace WHERE nspname = current_schema()
), relations AS (
    SELECT pg_class.* FROM pg_class JOIN here ON relnamespace = here.oid
), facts AS (
    SELECT 'relations' AS kind, relname::text AS name,
        jsonb_build_object('kind', relkind, 'persistence', relpersistence, 'row_security', relrowsecurity) AS fact
      FROM relations
    UNION ALL
    SELECT 'columns', relname || '.' || attname, jsonb_build_object(
        'position', (SELECT count(*) FROM pg_attribute AS before WHERE before.attrelid = attribute.attrelid
            AND before.attnum > 0 AND NOT before.attisdropped AND before.attnum <= attribute.attnum),
        'type', format_type(atttypid, atttypmod), 'not_null', attnotnull, 'identity', attidentity,
        'generated', attgenerated, 'default', replace(pg_get_expr(adbin, adrelid), here.prefix, ''))
      FROM here, relations JOIN pg_attribute AS attribute ON attrelid = relations.oid
      LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
      WHERE relkind = 'r' AND attnum > 0 AND NOT attisdropped
    UNION ALL
    SELECT 'sequences', relname::text, jsonb_build_object('type', format_type(seqtypid, NULL), 'start', seqstart,
        'increment', seqincrement, 'max', seqmax, 'min', seqmin, 'cache', seqcache, 'cycle', seqcycle)
      FROM relations JOIN pg_sequence ON seqrelid = relations.oid
    UNION ALL
    SELECT 'constraints', relname || '.' || conname,
        to_jsonb(replace(pg_get_constraintdef(pg_constraint.oid), here.prefix, ''))
      FROM here, relations JOIN pg_constraint ON conrelid = relations.oid
      WHERE contype <> 'n'
    UNION ALL
    SELECT 'indexes', relname::text, to_jsonb(replace(pg_get_indexdef(relations.oid), here.prefix, ''))
      FROM here, relations WHERE relkind = 'i'
    UNION ALL
    SELECT 'triggers', relname || '.' || tgname, jsonb_build_object('enabled', tgenabled,
        'definition', replace(pg_get_triggerdef(pg_trigger.oid), here.prefix, ''))
      FROM here, relations JOIN pg_trigger ON tgrelid = relations.oid
      WHERE NOT tgisinternal
    UNION ALL
    SELECT 'functions', proname || '(' || pg_get_function_identity_arguments(pg_proc.oid) || ')', jsonb_build_object(
        'kind', prokind, 'arguments', pg_get_function_arguments(pg_proc.oid), 'result', pg_get_function_result(pg_proc.oid),
        'language', lanname, 'volatility', provolatile, 'strict', proisstrict, 'set', proretset,
        'security_definer', prosecdef, 'parallel', proparallel)
      FROM here, pg_proc JOIN pg_language ON pg_language.oid = prolang
      WHERE pronamespace = here.oid
    UNION ALL
    SELECT 'aggregates', aggfnoid::regproc::text, jsonb_build_object('state_function', aggtransfn::text,
        'state_type', format_type(aggtranstype, NULL), 'initial', agginitval, 'final_function', aggfinalfn::text)
      FROM here, pg_aggregate JOIN pg_proc ON pg_proc.oid = aggfnoid
      WHERE pronamespace = here.oid
    UNION ALL
    SELECT 'types', typname::text, to_jsonb(typtype)
      FROM pg_type JOIN here ON typnamespace = here.oid
      WHERE typrelid = 0 AND typelem = 0
)
SELECT jsonb_object_agg(kind, named) FROM (
    SELECT kind, jsonb_object_agg(name, fact) AS named FROM facts GROUP BY kind
) AS kinds
