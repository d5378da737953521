"""Problems: a contract, a reference, a starting kernel and the variants that a prescription may ask for."""
