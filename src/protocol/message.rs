//! Message bodies as delivered (temporary; replaced by the merge).
