// The in-process driver: nodes are threads of one process and meet at a Hub.
#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "io/link.h"

namespace talweg::inproc {

// Where the nodes of a process find each other. Thread-safe; must outlive its transports.
class Hub;

std::shared_ptr<Hub> make_hub();

// `name` must be unique within the hub.
std::unique_ptr<Transport> make_transport(std::shared_ptr<Hub> hub, const std::string& name,
                                          std::shared_ptr<Bell> bell);

}  // namespace talweg::inproc
