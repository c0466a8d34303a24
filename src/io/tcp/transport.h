// The TCP driver: nodes anywhere. Not encrypted: for one host or a trusted network.
#pragma once

#include "io/link.h"

namespace talweg::tcp {

// Listens at `listen` ("host:port"; port 0 lets the system choose). `published` is the host name or address others
// should dial, when it differs from the one listened on.
Result<std::unique_ptr<Transport>> make_transport(const std::string& listen, const std::string& published = "");

}  // namespace talweg::tcp
