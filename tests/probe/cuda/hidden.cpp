int probe_hidden() {
  return 1;
}
